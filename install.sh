#!/bin/sh
# Installs the newest release of Postroom for this system:
#
#   curl -fsSL https://raw.githubusercontent.com/postroom/postroom/main/install.sh | sh
#
# It downloads one archive, compares it with the release's checksums, and puts the program
# into /usr/local/bin, or into ~/.local/bin without the rights for that. Settings:
#   POSTROOM_VERSION      a release such as 1.4.0 (default: the newest)
#   POSTROOM_INSTALL_DIR  the folder for the program
#   POSTROOM_RELEASE      an address or folder that holds the files of a release
set -eu

fail() {
	echo "install: $*" >&2
	exit 1
}

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "no program for $(uname -s); see https://github.com/postroom/postroom/releases" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "no program for $(uname -m); build it with Go: go install github.com/postroom/postroom/cmd/postroom@latest" ;;
esac

if [ -n "${POSTROOM_RELEASE:-}" ]; then
	base=$POSTROOM_RELEASE
elif [ -n "${POSTROOM_VERSION:-}" ]; then
	base=https://github.com/postroom/postroom/releases/download/v${POSTROOM_VERSION#v}
else
	base=https://github.com/postroom/postroom/releases/latest/download
fi

# fetch SOURCE FILE copies from a folder or downloads.
fetch() {
	case $1 in
	http://* | https://* | file://*) curl -fsSL --retry 3 -o "$2" "$1" ;;
	*) cp "$1" "$2" ;;
	esac
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch "$base/checksums.txt" "$work/checksums.txt" || fail "cannot read $base/checksums.txt"
line=$(grep "_${os}_${arch}\.tar\.gz\$" "$work/checksums.txt") || fail "the release has no archive for $os on $arch"
archive=${line##* }
fetch "$base/$archive" "$work/$archive" || fail "cannot read $base/$archive"

if command -v sha256sum >/dev/null 2>&1; then
	sum=$(sha256sum "$work/$archive")
else
	sum=$(shasum -a 256 "$work/$archive")
fi
[ "${sum%% *}" = "${line%% *}" ] || fail "$archive does not match its checksum: expected ${line%% *}, got ${sum%% *}"
tar -xzf "$work/$archive" -C "$work" postroom

dir=${POSTROOM_INSTALL_DIR:-/usr/local/bin}
if [ -z "${POSTROOM_INSTALL_DIR:-}" ] && ! [ -w "$dir" ]; then
	dir=$HOME/.local/bin
fi
mkdir -p "$dir"
# A running server keeps the old file until it is restarted.
mv "$work/postroom" "$dir/.postroom.new"
chmod 755 "$dir/.postroom.new"
mv "$dir/.postroom.new" "$dir/postroom"

echo "Installed $("$dir/postroom" version) to $dir/postroom"
case :$PATH: in
*:"$dir":*) ;;
*) echo "Add $dir to your PATH." ;;
esac
echo "Start the server: postroom serve"
