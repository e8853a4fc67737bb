package safety_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/png"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/internal/skiptest"
)

// TestBrowserHidesTheSameText measures the forms in a browser: a page looks the same with
// another text in the place of a hidden one, and different with another text in the place of a
// visible one.
func TestBrowserHidesTheSameText(t *testing.T) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		skiptest.OutsideCI(t, "chromium is not installed")
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true), chromedp.WindowSize(800, 600))
	defer stopAlloc()
	ctx, stop := chromedp.NewContext(alloc)
	defer stop()
	other := []byte(secret)
	for i := range other { // as wide, but another text
		other[i] = secret[len(secret)-1-i]
	}
	for _, forms := range [][]form{hiddenForms, shownForms} {
		for _, f := range forms {
			if strings.HasPrefix(f.name, "font-size 1px") || f.name == "font-size in em" {
				continue // it leaves grey dots that no one can read
			}
			page := f.page()
			same := alike(look(ctx, t, page), look(ctx, t, strings.ReplaceAll(page, secret, string(other))))
			if hidden := &forms[0] == &hiddenForms[0]; same != hidden {
				t.Errorf("%s: looks the same with another text: %t", f.name, same)
			}
		}
	}
}

// look returns the picture of a page.
func look(ctx context.Context, t *testing.T, page string) image.Image {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate("data:text/html;charset=utf-8;base64,"+base64.StdEncoding.EncodeToString([]byte(page)))); err != nil {
		t.Fatal(err)
	}
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// faint is by how much, of 65,535, a colour may differ without being seen.
const faint = 7000

func alike(a, b image.Image) bool {
	if a.Bounds() != b.Bounds() {
		return false
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			if max(r1, r2)-min(r1, r2) > faint || max(g1, g2)-min(g1, g2) > faint || max(b1, b2)-min(b1, b2) > faint {
				return false
			}
		}
	}
	return true
}
