package web

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

// ImageLife is how long the address of an image works.
const ImageLife = imageLife
