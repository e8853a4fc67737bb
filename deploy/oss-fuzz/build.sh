#!/bin/bash -eu
# Builds every native fuzz target: the name of the program is that of the package and target.
go mod download
for file in $(grep -rl --include=*_test.go '^func Fuzz' .); do
	package=github.com/postroom/postroom/$(dirname "${file#./}")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		compile_native_go_fuzzer "$package" "$target" "$(basename "$package")_$target"
	done
done
