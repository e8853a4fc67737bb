// Command site writes the documentation as a static site.
//
//	site FOLDER
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/docs"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: site FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	files, err := docs.Site(gen.OpenAPI())
	if err != nil {
		return err
	}
	for name, body := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a site is public
			return err
		}
		if err := os.WriteFile(path, body, 0o644); err != nil { //nolint:gosec // a site is public
			return err
		}
	}
	fmt.Printf("wrote %d files into %s\n", len(files), folder)
	return nil
}
