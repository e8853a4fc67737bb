package main

import (
	"cmp"
	"runtime/debug"
)

// version is set by the linker; see the Makefile.
var version string

// programVersion is what was built, as far as it is known.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if version != "" || !ok || info.Main.Version == "(devel)" {
		return cmp.Or(version, "dev")
	}
	return cmp.Or(info.Main.Version, "dev")
}
