package mime

import "bytes"

// uuDecoder decodes uuencode, the encoding before MIME, which some parts still
// use. It ignores text before the "begin" line and after the "end" line.
type uuDecoder struct {
	line  []byte // incomplete line
	begun bool
	ended bool
}

// maxUULine is longer than any uuencoded line.
const maxUULine = 128

func (d *uuDecoder) decode(dst, p []byte) []byte {
	for len(p) > 0 && !d.ended {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			d.hold(p)
			break
		}
		d.hold(p[:end])
		dst = d.flush(dst)
		p = p[end+1:]
	}
	return dst
}

// hold buffers a piece of a line, up to maxUULine.
func (d *uuDecoder) hold(p []byte) {
	d.line = append(d.line, p[:min(len(p), maxUULine-min(len(d.line), maxUULine))]...)
}

func (d *uuDecoder) finish(dst []byte) []byte { return d.flush(dst) }

// flush decodes the buffered line. Its first character encodes the number of
// bytes; then four characters encode three bytes.
func (d *uuDecoder) flush(dst []byte) []byte {
	line := bytes.TrimRight(d.line, "\r")
	d.line = d.line[:0]
	switch {
	case d.ended || len(line) == 0:
		return dst
	case !d.begun:
		d.begun = bytes.HasPrefix(line, []byte("begin "))
		return dst
	case bytes.Equal(line, []byte("end")):
		d.ended = true
		return dst
	}
	n := min(int(uuValue(line[0])), (len(line)-1)*6/8)
	for quad := line[1:]; n > 0 && len(quad) > 1; {
		var v [4]byte
		for i := range min(len(quad), len(v)) {
			v[i] = uuValue(quad[i])
		}
		out := []byte{v[0]<<2 | v[1]>>4, v[1]<<4 | v[2]>>2, v[2]<<6 | v[3]}
		dst = append(dst, out[:min(n, len(out))]...)
		n -= len(out)
		quad = quad[min(len(quad), len(v)):]
	}
	return dst
}

// uuValue returns the six bits that c encodes.
func uuValue(c byte) byte { return (c - ' ') & 0x3f }
