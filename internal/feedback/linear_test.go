package feedback

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

func linearReaders(t *testing.T) []lineartest.Reader {
	t.Helper()
	s := newSigner(t, "k")
	units := []string{"a", "+", "@", "<", " ", "é", "%"}
	return []lineartest.Reader{
		{Name: "Signer.ReadReturnTag", Units: units, Short: 4, Read: func(x string) { s.ReadReturnTag(x) }},
		{Name: "Signer.FindReturnPath", Units: units, Short: 4, Read: func(x string) { s.FindReturnPath("<bounce+" + x) }},
		{Name: "Signer.ReadUnsubscribe", Units: units, Short: 4, Read: func(x string) { s.ReadUnsubscribe(x) }},
		{Name: "Signer.ReadOpen", Units: units, Short: 4, Read: func(x string) { s.ReadOpen(x) }},
		{Name: "Signer.ReadClick", Units: units, Short: 4, Read: func(x string) { s.ReadClick(x) }},
		{Name: "Signer.Click", Units: units, Short: 4, Read: func(x string) { s.Click(Tracked{Account: 1, ID: "em_1"}, x) }},
		{Name: "IsWeb", Units: []string{"a", lineartest.Letter, ".", "/", "@", "%"}, Short: 4, Read: func(x string) { IsWeb("https://" + x) }},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders(t)) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(t), map[string]string{
		"NewSigner": "takes a key", "Signer.Open": "writes a token", "Signer.Unsubscribe": "writes a token",
		"Signer.UnsubscribeFields": "writes header fields", "Signer.ReturnPath": "writes an address",
	})
}
