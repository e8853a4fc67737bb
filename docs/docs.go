// Package docs holds the guides, so that an installation can show them without the
// internet.
package docs

import "embed"

// Guides are the pages and their images.
//
//go:embed *.md images/*.svg
var Guides embed.FS
