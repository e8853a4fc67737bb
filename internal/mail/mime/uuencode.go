package mime

import "bytes"

// uuDecoder decodes the encoding that mail had before MIME, which some parts
// still name. What stands before its "begin" line is left out, as is all after
// its end.
type uuDecoder struct {
	line  []byte // whose end has not come
	begun bool
	ended bool
}

// maxUULine is longer than any line of it.
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

// hold keeps a piece of a line; no more than a line can be.
func (d *uuDecoder) hold(p []byte) {
	d.line = append(d.line, p[:min(len(p), maxUULine-min(len(d.line), maxUULine))]...)
}

func (d *uuDecoder) finish(dst []byte) []byte { return d.flush(dst) }

// flush decodes the line that is held: its first character says how many bytes
// it stands for, then four characters stand for three bytes each.
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

// uuValue returns the six bits that a character stands for.
func uuValue(c byte) byte { return (c - ' ') & 0x3f }
