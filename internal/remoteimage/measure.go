package remoteimage

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif" // formats that image.DecodeConfig then knows
	_ "image/jpeg"
	_ "image/png"
)

// measure returns the media type and the size in pixels of an image. kind is ""
// if the format is not supported.
func measure(b []byte) (kind string, width, height int) {
	if w, h, ok := webp(b); ok {
		return "image/webp", w, h
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return "", 0, 0
	}
	return "image/" + format, c.Width, c.Height
}

// webp reads the header of a WebP image (RFC 9649, sections 2.4 to 2.7).
func webp(b []byte) (width, height int, ok bool) {
	if len(b) < 30 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0, false
	}
	le := binary.LittleEndian
	switch string(b[12:16]) {
	case "VP8 ": // RFC 6386 section 9.1
		return int(le.Uint16(b[26:]) & 0x3fff), int(le.Uint16(b[28:]) & 0x3fff), b[23] == 0x9d && b[24] == 0x01 && b[25] == 0x2a
	case "VP8L":
		bits := le.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, b[20] == 0x2f
	case "VP8X":
		return int(le.Uint32(b[24:])&0xffffff) + 1, int(le.Uint32(b[26:])>>8) + 1, true
	}
	return 0, 0, false
}
