"""Tests against a server that fails on purpose."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from postroom import Inbox, Postroom, PostroomError, WebhookVerificationError, verify_webhook

Handler = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Calls the next of its handlers for each request, and then hangs up."""

    def __init__(self) -> None:
        self.handlers: list[Handler] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Serve(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                outer.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                if outer.handlers:
                    outer.handlers.pop(0)(self)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Serve)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.client = Postroom("sk_test", f"http://127.0.0.1:{self.http.server_port}/")


@pytest.fixture
def server() -> Iterator[Server]:
    s = Server()
    yield s
    s.http.shutdown()
    s.http.server_close()


def respond(status: int, body: object, **headers: str) -> Handler:
    def handle(h: BaseHTTPRequestHandler) -> None:
        h.send_response(status)
        for name, value in headers.items():
            h.send_header(name.replace("_", "-"), value)
        h.end_headers()
        h.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    return handle


def refuse(status: int, code: str, **headers: str) -> Handler:
    return respond(status, {"error": {"code": code, "message": "no", "request_id": "req_1"}}, **headers)


def hang_up(_: BaseHTTPRequestHandler) -> None:
    pass


INBOX = {"id": "ibx_1", "address": "a@b.example"}


def test_429_and_503_with_retry_after(server: Server) -> None:
    server.handlers = [
        refuse(429, "rate_limited", retry_after="1"),
        refuse(503, "unavailable", retry_after="0"),
        respond(201, INBOX),
    ]
    start = time.monotonic()
    assert server.client.create_inbox().id == "ibx_1"
    assert time.monotonic() - start >= 1
    keys = {headers.get("idempotency-key") for _, headers in server.requests}
    assert len(server.requests) == 3 and len(keys) == 1 and None not in keys


def test_broken_connections(server: Server) -> None:
    server.handlers = [hang_up, respond(200, b'{"id": ', content_length="100"), respond(200, INBOX)]
    assert server.client.inbox("ibx_1").address == "a@b.example"


def test_what_is_not_safe_is_not_repeated(server: Server) -> None:
    server.handlers = [hang_up, refuse(429, "daily_limit_reached")]
    with pytest.raises(OSError):
        server.client.request("POST", "/v1/webhooks", body={})
    with pytest.raises(PostroomError, match="no") as refused:
        server.client.create_inbox()
    assert refused.value.code == "daily_limit_reached" and len(server.requests) == 2


def test_wrong_arguments_fail_at_the_call(server: Server) -> None:
    client = server.client
    inbox = Inbox(client, "ibx_1", "a@b.example")
    for call, text in [
        (lambda: inbox.code(timeout="5"), "timeout must be int or float, not str: '5'"),
        (lambda: inbox.message(sender=7), "sender must be str or None, not int: 7"),
        (lambda: inbox.send(to="a@b.example", subject=1, text="t"), "subject must be str, not int: 1"),
        (lambda: inbox.send(to="a@b.example", subjct="s"), "sendMessage has no argument subjct: did you mean subject?"),
        (lambda: client.templates.create(name="n"), "createTemplate needs the argument subject"),
        (lambda: client.emails.list(limit=True), "limit must be int, not bool: True"),
    ]:
        with pytest.raises(TypeError) as wrong:
            call()
        assert str(wrong.value) == text
    assert server.requests == []


def test_wait_goes_on_while_the_server_restarts(server: Server) -> None:
    following = {"since": "2026-01-01T00:00:00.000Z", "after": None}
    code = {"otp": "482913", "message_id": "msg_1", "received_at": "2026-01-01T00:00:01.000Z"}
    server.handlers = [
        respond(200, {"code": None, "next": following}),
        hang_up,
        refuse(503, "unavailable", retry_after="0"),
        hang_up,
        hang_up,
        hang_up,
        respond(200, {"code": code, "next": following}),
    ]
    assert server.client.wait_for_code("ibx_1") == "482913"
    assert len(server.requests) == 7
    assert all("since=2026-01-01T00%3A00%3A00.000Z" in path for path, _ in server.requests[1:])


def test_stream_resumes_after_its_last_event(server: Server) -> None:
    def event(n: int) -> bytes:
        data = {"object": "event", "id": f"evt_{n}", "type": "x", "created_at": "2026-01-01T00:00:00.000Z"}
        return f"id: evt_{n}\nevent: x\ndata: {json.dumps(data)}\n\n".encode()

    server.handlers = [
        respond(200, b"retry: 10\n\n" + event(1) + b": ping\n\n" + event(2)[:30]),
        hang_up,
        respond(200, event(2)),
    ]
    events = server.client.events()
    assert [next(events)["id"], next(events)["id"]] == ["evt_1", "evt_2"]  # type: ignore[typeddict-item]
    assert [headers.get("last-event-id") for _, headers in server.requests] == [None, "evt_1", "evt_1"]


def test_webhooks_are_verified() -> None:
    key, body, now = b"0123456789abcdef01234567", b'{"id": "evt_1"}', str(int(time.time()))
    secret = "whsec_" + base64.b64encode(key).decode()

    def sign(at: str) -> str:
        return "v1," + base64.b64encode(hmac.digest(key, f"evt_1.{at}.".encode() + body, hashlib.sha256)).decode()

    headers = {"Webhook-Id": "evt_1", "webhook-timestamp": now, "webhook-signature": f"v1,bad {sign(now)}"}
    assert verify_webhook(body, headers, ["whsec_b3RoZXI=", secret])["id"] == "evt_1"
    old = str(int(now) - 301)
    for content, bad in [
        (body + b" ", headers),
        (body, headers | {"webhook-signature": "v1,bad"}),
        (body, headers | {"webhook-timestamp": old, "webhook-signature": sign(old)}),
        (body, {}),
    ]:
        with pytest.raises(WebhookVerificationError):
            verify_webhook(content, bad, secret)
