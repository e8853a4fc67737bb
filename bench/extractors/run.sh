#!/usr/bin/env bash
# Scores Postroom and other open extractors of verification codes on the messages
# of internal/mail/extract/testdata/languages. It installs the others in a
# temporary folder with npm.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test ./internal/mail/extract -count=1 -run 'TestLanguages$' -args -export "$work/messages.jsonl" >/dev/null
cp bench/extractors/score.mjs "$work"
cd "$work"
npm init -y >/dev/null 2>&1
npm install --silent --no-audit --no-fund parse-otp-message@1.0.2 otp-message-extractor@0.1.1 cypress-maildev@2.0.0
node score.mjs messages.jsonl
