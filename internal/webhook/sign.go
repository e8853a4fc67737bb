package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// sign returns the value of webhook-signature: one signature per key, separated
// by spaces.
func sign(keys [][]byte, id string, at time.Time, body []byte) string {
	var sb strings.Builder
	for i, key := range keys {
		if i > 0 {
			sb.WriteByte(' ')
		}
		m := hmac.New(sha256.New, key)
		_, _ = m.Write([]byte(id + "." + timestamp(at) + ".")) // a hash never returns an error
		_, _ = m.Write(body)
		sb.WriteString("v1,")
		sb.WriteString(base64.StdEncoding.EncodeToString(m.Sum(nil)))
	}
	return sb.String()
}

func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
