#!/bin/sh
# Installs the newest release of Postroom for this system:
#
#   curl -fsSL https://raw.githubusercontent.com/postroom/postroom/main/install.sh | sh
#
# It downloads one archive, compares it with the release's checksums, and puts the program
# into /usr/local/bin, or into ~/.local/bin without the rights for that. If cosign is
# installed, or the GitHub CLI is signed in, it also checks who signed the release.
# Settings:
#   POSTROOM_VERSION      a release such as 1.4.0 (default: the newest)
#   POSTROOM_INSTALL_DIR  the folder for the program
#   POSTROOM_RELEASE      an https:// address, or a folder, that holds the files of a release
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

case ${POSTROOM_RELEASE:-} in
https://*) ;;
*://*) fail "POSTROOM_RELEASE is $POSTROOM_RELEASE: use an https:// address or a folder" ;;
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
	https://*) curl -fsSL --proto '=https' --proto-redir '=https' --retry 3 -o "$2" "$1" ;;
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

# The release workflow signs with its own identity, which a person with the files alone
# does not have. A folder without a signature is your own build.
bundle=checksums.txt.sigstore.json
if [ -d "$base" ] && ! [ -e "$base/$bundle" ]; then
	echo "The files in $base are not signed: only the checksum was verified."
elif command -v cosign >/dev/null 2>&1; then
	fetch "$base/$bundle" "$work/$bundle" || fail "cannot read the signature $base/$bundle"
	cosign verify-blob --bundle "$work/$bundle" \
		--certificate-identity-regexp "^https://github\.com/postroom/postroom/\.github/workflows/release\.yml@refs/tags/v" \
		--certificate-oidc-issuer https://token.actions.githubusercontent.com \
		"$work/checksums.txt" >"$work/verified" 2>&1 || fail "the signature of the release is wrong: $(cat "$work/verified")"
	echo "Verified the signature with cosign."
elif command -v gh >/dev/null 2>&1 && gh auth status >/dev/null 2>&1 && gh attestation verify --help >/dev/null 2>&1; then
	gh attestation verify "$work/$archive" --repo postroom/postroom --signer-workflow postroom/postroom/.github/workflows/release.yml >"$work/verified" 2>&1 ||
		fail "the provenance of the release is wrong: $(cat "$work/verified")"
	echo "Verified the provenance with gh."
else
	echo "Verified the checksum only: install cosign, or sign in to gh, to verify the signature too."
fi
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
