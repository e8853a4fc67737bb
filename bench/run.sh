#!/bin/sh
# Measures ingest and wait on SQLite with one service, then reading, outbound mail and
# the peers, each with its own service. bench/README.md describes the measurements.
set -eu
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
service=
trap 'if [ -n "$service" ]; then kill "$service" 2>/dev/null || true; wait "$service" || true; fi; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

go build -o "$dir" ./cmd/postroom ./bench/ingest ./bench/wait ./bench/read ./bench/outbound

export KEY=sk_live_bench00000000000000000000
api=127.0.0.1:${BENCH_HTTP_PORT:-18080}
smtp=127.0.0.1:${BENCH_SMTP_PORT:-12525}
POSTROOM_BOOTSTRAP_KEY=$KEY POSTROOM_DATA=$dir/data POSTROOM_HTTP=$api POSTROOM_SMTP=$smtp \
	"$dir/postroom" serve --rate-limits off --smtp-max-conns-per-ip 100 --log-level warn &
service=$!
tries=0
until curl -fs -o "$dir/health" "http://$api/health"; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ] || ! kill -0 "$service" 2>/dev/null; then
		echo "the service did not start" >&2
		exit 1
	fi
	sleep 0.1
done

echo "== ingest: 64 connections, messages of 4 KB"
"$dir/ingest" -addr "$smtp" -api "http://$api" -c 64 -size 4k -baseline -pid "$service"
echo "== wait: one waiter"
"$dir/wait" -smtp "$smtp" -api "http://$api" -waiters 1 -rounds 2000 -pid "$service"
echo "== wait: 1,000 waiters"
"$dir/wait" -smtp "$smtp" -api "http://$api" -waiters 1000 -rounds 20
kill "$service"
wait "$service" || true
service=
echo "== read: 100,000 messages, on SQLite"
"$dir/read" -service "$dir/postroom"
echo "== outbound: messages of 4 KB, on SQLite"
"$dir/outbound" -service "$dir/postroom"
echo "== peers: the same messages received by others, in turn"
go run ./bench/peers -service "$dir/postroom"
