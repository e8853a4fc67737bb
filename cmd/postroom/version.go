package main

import (
	"cmp"
	"runtime/debug"
)

// version is set by the linker; see the Makefile.
var version string

// programVersion returns the version of the build, as far as it is known.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if version != "" || !ok || info.Main.Version == "(devel)" {
		return cmp.Or(version, "dev")
	}
	return cmp.Or(info.Main.Version, "dev")
}
