"""The client for asyncio. Each call runs in a thread, so that it needs no other package."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any, Callable, TypeVar, Unpack, cast

from . import client
from ._resources import CreateInboxFields, ReplyToMessageFields, SendMessageFields
from ._types import Draft, Message, StreamEvent

T = TypeVar("T")


class AsyncPostroom:
    """Postroom for asyncio. Cancelling a call leaves its thread to end by itself."""

    def __init__(self, api_key: str | None = None, base_url: str | None = None, *, threads: int = 100, **options: Any) -> None:
        self.sync = client.Postroom(api_key, base_url, **options)
        self._threads = ThreadPoolExecutor(threads, "postroom")

    async def __aenter__(self) -> AsyncPostroom:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *args, **named))

    async def _each(self, items: Iterator[T]) -> AsyncIterator[T]:
        end = object()
        while True:
            item = await self._run(cast("Callable[..., Any]", next), items, end)
            if item is end:
                return
            yield item

    async def request(self, method: str, path: str, **named: Any) -> Any:
        """Call an operation by its method and path."""
        return await self._run(self.sync.request, method, path, **named)

    def list(self, path: str, *, query: Mapping[str, object] | None = None, **params: str) -> AsyncIterator[Any]:
        """Yield all items of a list, and fetch pages as needed."""
        return self._each(self.sync.list(path, query=query, **params))

    async def call(self, method: Callable[..., T], *args: Any, **named: Any) -> T:
        """Call a method of the synchronous client, as in ``await postroom.call(postroom.sync.templates.get, "tmpl_...")``."""
        return await self._run(method, *args, **named)

    async def create_inbox(self, *, idempotency_key: str | None = None, **fields: Unpack[CreateInboxFields]) -> AsyncInbox:
        """Create an inbox."""
        return AsyncInbox(self, await self._run(self.sync.create_inbox, idempotency_key=idempotency_key, **fields))

    async def inbox(self, inbox_id: str) -> AsyncInbox:
        """Return an existing inbox."""
        return AsyncInbox(self, await self._run(self.sync.inbox, inbox_id))

    async def reply(self, message_id: str, *, idempotency_key: str | None = None, **fields: Unpack[ReplyToMessageFields]) -> Message | Draft:
        """Reply in the thread of a message."""
        return await self._run(self.sync.reply, message_id, idempotency_key=idempotency_key, **fields)

    async def raw(self, message_id: str) -> bytes:
        """Download a message as received or sent."""
        return await self._run(self.sync.raw, message_id)

    def events(
        self, *, inbox_id: str | None = None, types: Sequence[str] = (), last_event_id: str | None = None
    ) -> AsyncIterator[StreamEvent]:
        """Yield events as they happen. A broken stream resumes where it was."""
        return self._each(self.sync.events(inbox_id=inbox_id, types=types, last_event_id=last_event_id))


class AsyncInbox:
    """An inbox of a program. As a context manager it is deleted at the end."""

    def __init__(self, owner: AsyncPostroom, sync: client.Inbox) -> None:
        self.client, self.sync = owner, sync
        self.id, self.address = sync.id, sync.address

    async def __aenter__(self) -> AsyncInbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.delete()

    async def code(
        self, *, sender: str | None = None, subject: str | None = None, since: datetime | None = None, timeout: float = 60.0
    ) -> str:
        """Wait for a verification code."""
        return await self.client._run(self.sync.code, sender=sender, subject=subject, since=since, timeout=timeout)

    async def link(
        self, *, sender: str | None = None, subject: str | None = None, since: datetime | None = None, timeout: float = 60.0
    ) -> str:
        """Wait for the link of a verification message."""
        return await self.client._run(self.sync.link, sender=sender, subject=subject, since=since, timeout=timeout)

    async def message(
        self, *, sender: str | None = None, subject: str | None = None, since: datetime | None = None, timeout: float = 60.0
    ) -> Message:
        """Wait for the next message."""
        return await self.client._run(self.sync.message, sender=sender, subject=subject, since=since, timeout=timeout)

    def messages(self) -> AsyncIterator[Message]:
        """Yield the messages of the inbox, newest first."""
        return self.client._each(self.sync.messages())

    async def send(self, *, idempotency_key: str | None = None, **fields: Unpack[SendMessageFields]) -> Message | Draft:
        """Send a message. The result is a draft if the message needs approval."""
        return await self.client._run(self.sync.send, idempotency_key=idempotency_key, **fields)

    async def delete(self) -> None:
        """Delete the inbox with its messages."""
        await self.client._run(self.sync.delete)
