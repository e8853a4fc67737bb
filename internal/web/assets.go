package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
)

//go:embed assets
var assetFiles embed.FS

// assets are the style sheet, script and images, by file name.
type assets map[string]asset

type asset struct {
	body        []byte
	version     string // changes with the body
	contentType string
}

func readAssets() (assets, error) {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	all := assets{}
	for _, e := range entries {
		body, err := assetFiles.ReadFile(path.Join("assets", e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		all[e.Name()] = asset{body, hex.EncodeToString(sum[:6]), mime.TypeByExtension(path.Ext(e.Name()))}
	}
	return all, nil
}

// link returns the URL of a file. Browsers may cache it without expiry, because
// the URL changes with the content.
func (a assets) link(name string) string { return "/assets/" + name + "?v=" + a[name].version }

// serve handles /assets/{file}.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	f, ok := a[r.PathValue("file")]
	h := w.Header()
	secure(h)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == f.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", f.contentType)
	_, _ = w.Write(f.body) // the client may have disconnected
}
