package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
)

//go:embed assets
var assetFiles embed.FS

// assetVersion returns a text that changes with the style sheets, scripts and images.
func assetVersion() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(assetFiles, "assets", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := assetFiles.ReadFile(path)
		_, _ = sum.Write(body) // a hash never returns an error
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}

// assetLink returns the URL of a file. Browsers may cache it without expiry, because
// the URL changes with the content.
func (d *Dashboard) assetLink(name string) string { return "/assets/" + name + "?v=" + d.version }

// asset serves /assets/{file}.
func (d *Dashboard) asset(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.URL.Query().Get("v") == d.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeFileFS(w, r, assetFiles, "assets/"+r.PathValue("file"))
}
