package web

import "net/http"

// NavigationPaths are the pages that the navigation leads to.
func NavigationPaths() []string {
	var paths []string
	for _, g := range navigation {
		for _, i := range g.Items {
			paths = append(paths, i.Path)
		}
	}
	return paths
}

// ImageTTL is the lifetime of an image URL.
const ImageTTL = imageTTL

// FrameStyle is the default style of a message.
const FrameStyle = frameStyle

// PatternOf is the route that serves a request, empty when it is not a page.
func PatternOf(dashboard http.Handler, r *http.Request) string {
	d, ok := dashboard.(*Dashboard)
	if !ok {
		return ""
	}
	_, pattern := d.mux.Handler(r)
	return pattern
}
