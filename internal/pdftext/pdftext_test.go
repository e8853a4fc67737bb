package pdftext_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/pdftext"
)

// A file that a browser printed has compressed streams and parts of fonts.
func TestTextOfAPDFFromABrowser(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("testdata", "browser.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := pdftext.Text(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{"Invoice 2026-118\n", "Dear Ana Müller, your order of 3 books costs 42.50 €.", "Item Price\nDifficult fluffy office 12.00\n", "\n\nThe second page says: thank you, Привет."} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("no %q in order in:\n%s", want, text)
		}
		at += i
	}
}

// pdf returns a file with these objects. The first one is the catalog.
func pdf(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer << /Root 1 0 R >>\n")
	return b.Bytes()
}

// onePage returns a file whose only page has these instructions, and a simple font.
func onePage(instructions string, more ...string) []byte {
	return pdf(append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R 3 0 R] /Count 1 /Resources << /Font << /F1 5 0 R >> /XObject << /X1 6 0 R >> >> >>",
		"<< /Type /Page /Parent 2 0 R /Contents [4 0 R] >>",
		fmt.Sprintf("<< /Length %d >> stream\n%s\nendstream", len(instructions), instructions),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}, more...)...)
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestTextOfInstructions(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		file []byte
		want string
	}{
		"strings":     {onePage(`BT /F1 12 Tf (Hello \(Ana\)\041) Tj 0 -14 Td <576f726c64> Tj ET`), "Hello (Ana)!\nWorld"},
		"arrays":      {onePage(`BT /F1 12 Tf [(In) -20 (voice) -400 (7)] TJ T* (Next) ' ET`), "Invoice 7\nNext"},
		"positions":   {onePage(`BT 1 0 0 1 10 700 Tm (One) Tj 1 0 0 1 60 700 Tm (two) Tj 1 0 0 1 10 680 Tm (three) Tj ET`), "One two\nthree"},
		"octets":      {onePage("BT (caf\xe9 \x80) Tj ET"), "café €"},
		"no length":   {bytes.ReplaceAll(onePage(`BT (Found) Tj ET`), []byte("/Length 16"), []byte("/Length 99999")), "Found"},
		"form":        {onePage(`/X1 Do`, "<< /Subtype /Form /Length 18 >> stream\nBT (In a form) Tj ET\nendstream"), "In a form"},
		"own form":    {onePage(`/X1 Do`, "<< /Subtype /Form >> stream\nBT (x) Tj ET /X1 Do\nendstream"), "xxxx"},
		"image":       {onePage("BI /W 1 ID (((( EI BT (After) Tj ET"), "After"},
		"no catalog":  {bytes.ReplaceAll(onePage("BT (Alone) Tj ET"), []byte("/Catalog"), []byte("/Nothing")), "Alone"},
		"compressed":  {onePage("", "<< /Type /Page /Contents 7 0 R >>", "<< /Filter /FlateDecode >> stream\n"+deflated("BT (Small) Tj ET")+"\nendstream"), "Small"},
		"packed":      {onePage("", fmt.Sprintf("<< /Type /ObjStm /N 1 /First 5 /Filter [/FlateDecode] >> stream\n%s\nendstream", deflated("20 0 << /Type /Page /Contents 8 0 R >>")), "null", "<< /Length 19 >> stream\nBT (Unpacked) Tj ET\nendstream"), "Unpacked"},
		"wide font":   {bytes.ReplaceAll(onePage("BT /F1 9 Tf <00010002> Tj ET", "null", "<< >> stream\n1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfchar <0001> <0416> endbfchar 1 beginbfrange <0002> <0003> <0041> endbfrange\nendstream"), []byte("/Subtype /Type1"), []byte("/Subtype /Type0 /ToUnicode 7 0 R")), "ЖA"},
		"kerning":     {bytes.ReplaceAll(onePage(`BT /F1 10 Tf (or) Tj 10 0 Td (der) Tj 30 0 Td (now) Tj ET`), []byte("/BaseFont"), []byte("/FirstChar 100 /Widths [500 500 500 500 500 500 500 500 500 500 500 500 500 500 500] /BaseFont")), "order now"},
		"controls":    {onePage("BT (a\x01b\x1bc) Tj ET"), "abc"},
		"cut in half": {bytes.SplitAfter(onePage(`BT (Kept) Tj ET BT (Lost) Tj ET`), []byte("(Kept) Tj"))[0], "Kept"},
	} {
		if got, err := pdftext.Text(t.Context(), tt.file); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", what, got, err, tt.want)
		}
	}
}

func TestFilesWithoutText(t *testing.T) {
	t.Parallel()
	for what, file := range map[string][]byte{
		"empty": nil, "text": []byte("Hello"), "header only": []byte("%PDF-1.7"), "no text": onePage("0 0 m 10 10 l S"),
		"encrypted": append(onePage("BT (x) Tj ET"), "trailer << /Encrypt 9 0 R >>"...),
		"too large": append(onePage("BT (x) Tj ET"), make([]byte, pdftext.MaxBytes)...),
	} {
		if got, err := pdftext.Text(t.Context(), file); !errors.Is(err, pdftext.ErrNoText) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// Files that want to take long, or much memory, take little.
func TestHostileFilesAreBounded(t *testing.T) {
	t.Parallel()
	many := func(s string) string { return strings.Repeat(s, pdftext.MaxBytes/len(s)-200) }
	kids := strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(&kids, "<< /Kids [%d 0 R %d 0 R] >> endobj %d 0 obj ", i+6, i+7, i+6)
	}
	for what, file := range map[string][]byte{
		"objects":          []byte("%PDF-1.7 " + many("1 0 obj<<>>stream\n")),
		"numbers":          []byte("%PDF-1.7 " + many("1 1 1 obj ")),
		"open strings":     []byte("%PDF-1.7 " + many("1 0 obj (")),
		"open arrays":      []byte("%PDF-1.7 1 0 obj " + many("[")),
		"open dicts":       []byte("%PDF-1.7 1 0 obj " + many("<</A ")),
		"references":       []byte("%PDF-1.7 1 0 obj [" + many("1 0 ")),
		"escapes in names": []byte("%PDF-1.7 1 0 obj /" + many("#41")),
		"a bomb":           onePage("", "<< /Type /Page /Contents 7 0 R >>", "<< /Filter /FlateDecode >> stream\n"+deflated(strings.Repeat("BT (x) Tj ET ", 4<<20))+"\nendstream"),
		"one stream, many pages": onePage("", "<< /Type /Page /Contents ["+strings.Repeat("7 0 R ", 10_000)+"] >>",
			"<< /Filter /FlateDecode >> stream\n"+deflated(strings.Repeat(" ", 1<<20))+"\nendstream"),
		"a circle":  pdf("<< /Type /Catalog /Pages 2 0 R >>", "<< /Kids [2 0 R 3 0 R] >>", "<< /Kids [2 0 R 3 0 R] /Contents 3 0 R >>", "4 0 R"),
		"a lattice": pdf("<< /Type /Catalog /Pages 5 0 R >>", "null", "null", "null", kids.String()),
		"forms":     onePage(strings.Repeat("/X1 Do ", 1000), "<< /Subtype /Form >> stream\n"+strings.Repeat("/X1 Do ", 1000)+"\nendstream"),
		"a map": onePage("BT /F1 1 Tf (x) Tj ET", "null", "<< >> stream\n"+strings.Repeat("<00000000> <ffffffff> <0041> endbfrange ", 1000)+"\nendstream",
			"<< /Type /Page /Contents 4 0 R /Resources << /Font << /F1 << /ToUnicode 7 0 R >> >> >> >>"),
		"kids that share their kids": []byte("%PDF-1.4\n1 0 obj\n[<</Kids 1 0 R>><</Kids 1 0 R>><</Kids 1 0 R>>]\nendobj\n2 0 obj\n<</Type /Catalog /Pages <</Kids 1 0 R>> >>\nendobj"),
		"a form of spaces":           onePage(strings.Repeat("/X1 Do ", 1000), "<< /Subtype /Form >> stream\n"+strings.Repeat(" ", 3<<20)+"\nendstream"),
		"a form of empty blocks": onePage(strings.Repeat("/X1 Do ", 1000), "<< /Subtype /Form /Filter /FlateDecode >> stream\n\x78\x01"+
			strings.Repeat("\x00\x00\x00\xff\xff", 600_000)+"\nendstream"),
		"pages of one stream": pdf("<< /Type /Catalog /Pages 2 0 R >>", "<< /Kids ["+strings.Repeat("<< /Contents ["+strings.Repeat("3 0 R ", 100)+"] >> ", 100)+"] >>",
			"<< >> stream\n"+strings.Repeat(" ", 3<<20)+"\nendstream"),
		"a font in each use": onePage(strings.Repeat("/F1 1 Tf ", 100_000), "null", "["+strings.Repeat("1 ", 20_000)+"]",
			"<< /Type /Page /Contents 4 0 R /Resources << /Font << /F1 << /FirstChar 99999 /Widths 7 0 R >> >> >> >>"),
		"a map to long text": onePage("BT /F1 1 Tf (x) Tj ET", "null", "<< >> stream\n<0000> <ffff> <"+strings.Repeat("0041", 500_000)+"> endbfrange\nendstream",
			"<< /Type /Page /Contents 4 0 R /Resources << /Font << /F1 << /ToUnicode 7 0 R >> >> >> >>"),
		"codes of long text": onePage("BT /F1 1 Tf ("+strings.Repeat("x", 1<<20)+") Tj ET", "null", "<< >> stream\n<78> <"+strings.Repeat("0020", 100_000)+"> endbfchar\nendstream",
			"<< /Type /Page /Contents 4 0 R /Resources << /Font << /F1 << /ToUnicode 7 0 R >> >> >> >>"),
		"packed spaces": onePage("", "<< /Type /ObjStm /N 50000 /First 0 >> stream\n"+strings.Repeat("1 300000 ", 30_000)+strings.Repeat(" ", 3<<20)+"\nendstream"),
		"a packed lie":  onePage("", "<< /Type /ObjStm /N 1000000 /First 0 >> stream\n"+strings.Repeat("1 0 ", 200_000)+"\nendstream"),
	} {
		start := time.Now()
		text, _ := pdftext.Text(t.Context(), file) // some have text
		if took := time.Since(start); took > 5*time.Second || len(text) > 1<<20 {
			t.Errorf("%s: %d bytes of text after %s", what, len(text), took)
		}
		t.Logf("%s: %s", what, time.Since(start))
	}
}

// A reader who leaves ends the work.
func TestTextStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if text, err := pdftext.Text(ctx, onePage(`BT (Hello) Tj ET`)); text != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", text, err)
	}
}

func FuzzText(f *testing.F) {
	f.Add(onePage(`BT /F1 12 Tf (Hello) Tj ET`))
	f.Add(onePage(`/X1 Do`, "<< /Subtype /Form >> stream\nBT (x) Tj ET /X1 Do\nendstream"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if text, err := pdftext.Text(t.Context(), b); err == nil && strings.ContainsAny(text, "\x00\x1b\r") {
			t.Errorf("the text has controls: %q", text)
		}
	})
}
