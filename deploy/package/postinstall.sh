#!/bin/sh
# After an installation or an upgrade of the package. The service starts when the
# administrator enables it: the mail domain is to be set first.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# An upgrade goes on with the new program.
	systemctl try-restart postroom.service || true
fi
if ! [ -d /var/lib/postroom ] && ! [ -d /var/lib/private/postroom ]; then
	echo "Set POSTROOM_MAIL_DOMAIN in /etc/postroom.env, then: systemctl enable --now postroom"
	echo "The first API key and the link to the dashboard are in: journalctl -u postroom"
fi
