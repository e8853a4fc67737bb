#!/bin/sh
# Before the package is removed ("remove" or 0), not before it is upgraded. Mail stays
# in /var/lib/postroom.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now postroom.service || true
	fi
	;;
esac
