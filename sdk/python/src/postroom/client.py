"""The client."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias, Unpack, cast

from ._call import check
from ._resources import CreateInboxFields, ReplyToMessageFields, Resources, SendMessageFields
from ._types import IDEMPOTENT_POSTS, Draft, Message, ReceivedCode, StreamEvent
from .errors import PostroomError, WaitTimeoutError, error_of

JSON: TypeAlias = Any

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 20.0
_LONGEST_CALL = 60.0
# Without `since` the server looks back one minute from each call, so all attempts of the
# first call must end within that minute.
_FIRST_CALL, _FIRST_RETRIES = 15.0, 40.0
_MOST_FAILURES = 8
# The server sends something on a stream every 20 seconds.
_SILENCE = 60.0
_STREAM_ATTEMPTS = 25
# No event has this ID, so the server replays all that it remembers.
_UNKNOWN_EVENT = "evt_0"

_LOST = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, json.JSONDecodeError)


class Postroom(Resources):
    """A client of a Postroom server. Threads can share it.

    Its attributes, such as ``templates`` and ``emails``, have a method for each operation.
    The key and the address default to the environment variables POSTROOM_KEY and POSTROOM_URL.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        attempts: int = 4,
        retry_for: float = 90.0,
        timeout: float = 60.0,
    ) -> None:
        super().__init__(self)
        key = api_key or os.environ.get("POSTROOM_KEY")
        if not key:
            raise ValueError("pass api_key, or set POSTROOM_KEY")
        self._key = key
        self._base = (base_url or os.environ.get("POSTROOM_URL") or "http://127.0.0.1:8080").rstrip("/")
        self._attempts, self._retry_for, self._timeout = attempts, retry_for, timeout
        self._taken: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._opener = urllib.request.build_opener(_Redirects)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        retry_for: float | None = None,
        **params: str,
    ) -> JSON:
        """Call an operation by its method and path, and return the JSON of the response.

        ``client.request("GET", "/v1/inboxes/{inbox_id}", inbox_id="ibx_...")``
        """
        return self._repeat(method, path, query, body, idempotency_key, timeout, retry_for, params, json.loads)

    def list(self, path: str, *, query: Mapping[str, object] | None = None, **params: str) -> Iterator[JSON]:
        """Yield all items of a list, and fetch pages as needed."""
        asked = dict(query or {})
        while True:
            page = self._repeat("GET", path, asked, None, None, None, None, params, json.loads)
            yield from page["data"]
            if page["cursor"] is None:
                return
            asked["cursor"] = page["cursor"]

    def create_inbox(self, *, idempotency_key: str | None = None, **fields: Unpack[CreateInboxFields]) -> Inbox:
        """Create an inbox."""
        made = self.inboxes.create(idempotency_key=idempotency_key, **fields)
        return Inbox(self, made["id"], made["address"])

    def inbox(self, inbox_id: str) -> Inbox:
        """Return an existing inbox."""
        found = self.inboxes.get(inbox_id)
        return Inbox(self, found["id"], found["address"])

    def reply(self, message_id: str, *, idempotency_key: str | None = None, **fields: Unpack[ReplyToMessageFields]) -> Message | Draft:
        """Reply in the thread of a message. The result is a draft if the reply needs approval."""
        return self.messages.reply(message_id, idempotency_key=idempotency_key, **fields)

    def raw(self, message_id: str) -> bytes:
        """Download a message as received or sent."""
        path = "/v1/messages/{message_id}/raw"
        return cast(bytes, self._repeat("GET", path, None, None, None, None, None, {"message_id": message_id}, bytes))

    def wait_for_message(
        self,
        inbox_id: str,
        *,
        sender: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        timeout: float = 60.0,
    ) -> Message:
        """Wait for the next matching message, or raise a WaitTimeoutError after timeout seconds."""
        waiter = _Waiter(self, inbox_id, sender, subject, since, None)
        found = waiter.next(timeout)
        if found is None:
            raise waiter.error(timeout)
        return cast(Message, found)

    def wait_for_code(
        self,
        inbox_id: str,
        *,
        sender: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        timeout: float = 60.0,
    ) -> str:
        """Wait for a verification code and return it.

        Each code is returned once, so that you can ask for a second code and call again. The
        scope codes:read is enough.
        """
        return cast(str, self._received(_Waiter(self, inbox_id, sender, subject, since, "code"), timeout)["otp"])

    def wait_for_link(
        self,
        inbox_id: str,
        *,
        sender: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        timeout: float = 60.0,
    ) -> str:
        """Wait for the link of a verification message. Open it only if you know the sender."""
        return cast(str, self._received(_Waiter(self, inbox_id, sender, subject, since, "link"), timeout)["action_link"])

    def _received(self, waiter: _Waiter, timeout: float) -> ReceivedCode:
        check("timeout", timeout, "int float")
        end = time.monotonic() + timeout
        while True:
            found = waiter.next(max(0.0, end - time.monotonic()))
            if found is None:
                raise waiter.error(timeout)
            key = (waiter.has or "", found["message_id"])
            with self._lock:
                new = found["otp" if waiter.has == "code" else "action_link"] is not None and key not in self._taken
                if new:
                    self._taken.add(key)
            if new:
                return cast(ReceivedCode, found)

    def events(
        self, *, inbox_id: str | None = None, types: Sequence[str] = (), last_event_id: str | None = None
    ) -> Iterator[StreamEvent]:
        """Yield events as they happen. A broken stream resumes where it was.

        If the server no longer knows that position, a stream_gap comes first.
        """
        query = {"inbox_id": inbox_id, "events": ",".join(types) or None}
        last, retry, failures = last_event_id, 3.0, 0
        opened: datetime | None = None
        while True:
            replaying = last is None and opened is not None
            try:
                headers = {"accept": "text/event-stream"}
                if last is not None or replaying:
                    headers["last-event-id"] = last or _UNKNOWN_EVENT
                with self._open("GET", self._url("/v1/events/stream", query, {}), None, headers, _SILENCE) as response:
                    opened = opened or parsedate_to_datetime(response.headers["date"])
                    failures = 0
                    for event_id, text, pause in _frames(response):
                        retry = retry if pause is None else pause
                        if not text:
                            continue
                        try:
                            item = json.loads(text)
                        except json.JSONDecodeError as error:
                            raise ValueError("the stream has an event that is not JSON") from error
                        last = event_id or last
                        gap = item["object"] != "event"
                        at = datetime.fromisoformat(item["replayed_from" if gap else "created_at"])
                        # After a break before the first event, the replay has events from before the stream.
                        if not replaying or opened is None or at > opened or (at == opened and not gap):
                            yield item
            except PostroomError as error:
                if not error.temporary or opened is None or failures >= _STREAM_ATTEMPTS:
                    raise
                retry = error.retry_after if error.retry_after is not None else retry
            except _LOST:
                if opened is None or failures >= _STREAM_ATTEMPTS:
                    raise
            failures += 1
            time.sleep(min(retry * 2 ** max(0, failures - 2), 30.0))

    def _repeat(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        body: object,
        idempotency_key: str | None,
        timeout: float | None,
        retry_for: float | None,
        params: Mapping[str, str],
        read: Any,
    ) -> Any:
        if method == "POST" and path in IDEMPOTENT_POSTS:
            idempotency_key = idempotency_key or str(uuid.uuid4())
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        repeatable = method != "POST" or idempotency_key is not None
        url, data = self._url(path, query, params), None
        if body is not None:
            data = json.dumps(body, default=_text).encode()
            headers["content-type"] = "application/json"
        end = time.monotonic() + (self._retry_for if retry_for is None else retry_for)
        attempt = 0
        while True:
            attempt += 1
            try:
                with self._open(method, url, data, headers, timeout or self._timeout) as response:
                    return read(response.read())
            except (PostroomError, *_LOST) as error:
                pause = _pause_after(error, attempt)
                if not repeatable or pause is None or attempt >= self._attempts or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)

    def _open(self, method: str, url: str, data: bytes | None, headers: Mapping[str, str], timeout: float) -> http.client.HTTPResponse:
        request = urllib.request.Request(url, data=data, headers=dict(headers), method=method)
        request.add_unredirected_header("Authorization", f"Bearer {self._key}")
        try:
            return cast(http.client.HTTPResponse, self._opener.open(request, timeout=timeout))
        except urllib.error.HTTPError as error:
            with error:
                raise error_of(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()) from None

    def _url(self, path: str, query: Mapping[str, object] | None, params: Mapping[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            given = params.get(match[1])
            if not given:
                raise TypeError(f"{match[1]} is missing")
            return urllib.parse.quote(given, safe="")

        url = self._base + re.sub(r"\{(\w+)\}", value, path)
        pairs = {k: _text(v) for k, v in (query or {}).items() if v is not None}
        return f"{url}?{urllib.parse.urlencode(pairs)}" if pairs else url


class Inbox:
    """An inbox of a program. As a context manager it is deleted at the end."""

    def __init__(self, client: Postroom, id: str, address: str) -> None:
        self.client, self.id, self.address = client, id, address

    def __repr__(self) -> str:
        return f"Inbox({self.id!r}, {self.address!r})"

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.delete()

    def code(self, *, sender: str | None = None, subject: str | None = None, since: datetime | None = None, timeout: float = 60.0) -> str:
        """Wait for a verification code."""
        return self.client.wait_for_code(self.id, sender=sender, subject=subject, since=since, timeout=timeout)

    def link(self, *, sender: str | None = None, subject: str | None = None, since: datetime | None = None, timeout: float = 60.0) -> str:
        """Wait for the link of a verification message."""
        return self.client.wait_for_link(self.id, sender=sender, subject=subject, since=since, timeout=timeout)

    def message(
        self, *, sender: str | None = None, subject: str | None = None, since: datetime | None = None, timeout: float = 60.0
    ) -> Message:
        """Wait for the next message."""
        return self.client.wait_for_message(self.id, sender=sender, subject=subject, since=since, timeout=timeout)

    def messages(self) -> Iterator[Message]:
        """Yield the messages of the inbox, newest first."""
        return self.client.messages.list_inbox(self.id)

    def send(self, *, idempotency_key: str | None = None, **fields: Unpack[SendMessageFields]) -> Message | Draft:
        """Send a message. The result is a draft if the message needs approval."""
        return self.client.messages.send(self.id, idempotency_key=idempotency_key, **fields)

    def delete(self) -> None:
        """Delete the inbox with its messages."""
        self.client.inboxes.delete(self.id)


class _Waiter:
    """Waits for messages of one inbox, and misses none between two calls."""

    def __init__(
        self,
        client: Postroom,
        inbox_id: str,
        sender: str | None,
        subject: str | None,
        since: datetime | None,
        has: Literal["code", "link"] | None,
    ) -> None:
        for name, value in (("sender", sender), ("subject", subject), ("since", since)):
            check(name, value, "str None")
        self.client, self.inbox_id, self.has = client, inbox_id, has
        self.sender, self.subject = sender, subject
        self.since = None if since is None else _text(since)
        self.after: str | None = None
        self.last: str | None = None
        self.seen: set[str] = set()
        self.older: Mapping[str, Any] | None = None

    def next(self, timeout: float) -> Mapping[str, Any] | None:
        """Return the next message or code, or None after the timeout."""
        check("timeout", timeout, "int float")
        end, failures = time.monotonic() + timeout, 0
        while True:
            left = max(0.0, end - time.monotonic())
            if left == 0 and timeout > 0 and failures == 0:
                return None
            ask = max(1, round(min(left, _FIRST_CALL if self.since is None else _LONGEST_CALL)))
            started = time.monotonic()
            try:
                result = self.client.request(
                    "GET",
                    "/v1/inboxes/{inbox_id}/messages/wait",
                    query={
                        "timeout": ask,
                        "from": self.sender,
                        "subject": self.subject,
                        "since": self.since,
                        "after": self.after,
                        "has": self.has,
                        "view": "code" if self.has else None,
                    },
                    timeout=ask + 15.0,
                    retry_for=min(_FIRST_RETRIES if self.since is None else 90.0, left),
                    inbox_id=self.inbox_id,
                )
            except (PostroomError, *_LOST) as error:
                if isinstance(error, PostroomError) and error.param == "after" and self.last:
                    self.after, self.since = None, self.last  # the message was deleted
                    continue
                failures += 1
                pause = _pause_after(error, failures)
                if pause is None or failures > _MOST_FAILURES or time.monotonic() + pause >= end:
                    raise
                time.sleep(pause)
                continue
            failures = 0
            self.since = self.since or result["next"]["since"]
            self.older = result.get("older")
            found = result.get("code") or result.get("message")
            if found is None:
                if time.monotonic() - started < ask / 2:  # a server that stops ends its waits early
                    time.sleep(0.5)
                if time.monotonic() >= end:
                    return None
                continue
            found_id: str = found["message_id" if self.has else "id"]
            self.after, self.last = found_id, found["received_at"] or found["created_at"]
            if found_id not in self.seen:
                self.seen.add(found_id)
                return cast("Mapping[str, Any]", found)

    def error(self, timeout: float) -> WaitTimeoutError:
        """Describe a wait that failed: which messages came, and why none matched."""
        wanted = "message" if self.has is None else f"message with a {self.has}"
        wanted += "" if self.sender is None else f" from {self.sender}"
        wanted += "" if self.subject is None else f' with "{self.subject}" in its subject'
        text = f"no {wanted} came to inbox {self.inbox_id} within {timeout:g} s"
        if self.older and not self.after:
            text += f"; {self.older['count']} matched before {self.since}: pass since={self.older['newest']} to include the newest"
        messages: Sequence[Message] = []
        try:
            path = "/v1/inboxes/{inbox_id}/messages"
            query = {"direction": "in", "limit": 10}
            messages = self.client.request("GET", path, query=query, timeout=10.0, retry_for=0.0, inbox_id=self.inbox_id)["data"]
        except (PostroomError, *_LOST) as error:
            text += f"; the client could not list the messages that came: {error}"
        else:
            text += "; these messages came:" if messages else "; no message came at all"
        for m in messages:
            text += f'\n  "{m["subject"]}" from {_sender(m) or "an unknown sender"}: {", ".join(self._why(m))}'
        return WaitTimeoutError(text, messages)

    def _why(self, m: Message) -> Sequence[str]:
        why = []
        found = cast("Mapping[str, Any]", m["extracted"] or {})
        if self.sender is not None and not _matches(self.sender, _sender(m)):
            why.append(f"the sender is not {self.sender}")
        if self.subject is not None and self.subject.lower() not in m["subject"].lower():
            why.append(f'the subject does not contain "{self.subject}"')
        if self.since and m["received_at"] and datetime.fromisoformat(m["received_at"]) < datetime.fromisoformat(self.since):
            why.append(f"it came before {self.since}")
        if self.has == "code" and not found.get("otp"):
            codes = ", ".join(found.get("codes", ()))
            why.append(f"it has several possible codes: {codes}" if codes else "it has no code")
        if self.has == "link" and not found.get("action_link"):
            why.append("it has no link to follow")
        if (self.has, m["id"]) in self.client._taken:
            why.append(f"its {self.has} was returned before")
        return why or ["it came too late, or an earlier wait returned it"]


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects of GET only. The key is a header that is not redirected."""

    def redirect_request(self, req: urllib.request.Request, *args: Any) -> urllib.request.Request | None:
        return super().redirect_request(req, *args) if req.get_method() == "GET" else None


def _pause_after(error: Exception, attempt: int) -> float | None:
    """Return the pause before the next attempt, or None if the error is final."""
    backoff = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(attempt - 1, 10))
    pause = random.uniform(backoff / 2, backoff)
    if isinstance(error, PostroomError):
        if not error.temporary:
            return None
        return pause if error.retry_after is None else error.retry_after
    return pause


def _frames(response: http.client.HTTPResponse) -> Iterator[tuple[str | None, str, float | None]]:
    """Parse server-sent events. A frame that the end of the stream cuts off is dropped."""
    event_id: str | None = None
    pause: float | None = None
    lines: "list[str]" = []
    for raw in response:
        line = raw.decode(errors="replace").rstrip("\r\n")
        if line == "":
            yield event_id, "\n".join(lines), pause
            event_id, pause, lines = None, None, []
            continue
        field, _, content = line.partition(":")
        content = content.removeprefix(" ")
        if field == "data":
            lines.append(content)
        elif field == "id":
            event_id = content
        elif field == "retry" and content.isdigit():
            pause = int(content) / 1000


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sender(m: Message) -> str:
    sender = m["from"]
    return sender["email"] if sender else ""


def _matches(pattern: str, address: str) -> bool:
    want, got = pattern.lower(), address.lower()
    if want.startswith("*@*."):
        return got.endswith(want[3:])
    return got.endswith(want[1:]) if want.startswith("*@") else got == want
