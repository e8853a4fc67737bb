"""Tests against a real server: POSTROOM_URL, POSTROOM_KEY, and FLOWS sign-ups at once."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from postroom import AsyncPostroom, Inbox, Postroom, PostroomError, WaitTimeoutError

FLOWS = int(os.environ.get("FLOWS", "50"))


def send_code(app: Inbox, address: str, code: str) -> None:
    """Stand for an app that sends a code."""
    app.send(to=address, subject="Your sign-in code", text=f"Your verification code is {code}.")


def test_sign_ups_at_once(postroom: Postroom) -> None:
    app = postroom.create_inbox()

    def flow(n: int) -> str:
        with postroom.create_inbox() as inbox:
            send_code(app, inbox.address, str(100_000 + n))
            return inbox.code()

    with ThreadPoolExecutor(FLOWS) as threads:
        assert list(threads.map(flow, range(FLOWS))) == [str(100_000 + n) for n in range(FLOWS)]


def test_async_sign_ups_at_once() -> None:
    async def main() -> None:
        async with AsyncPostroom(threads=FLOWS) as postroom:
            app = await postroom.create_inbox()

            async def flow(n: int) -> None:
                async with await postroom.create_inbox() as inbox:
                    await app.send(to=inbox.address, subject="Code", text=f"Your verification code is {200_000 + n}.")
                    assert await inbox.code() == str(200_000 + n)

            await asyncio.gather(*map(flow, range(FLOWS)))
            assert len([m async for m in app.messages()]) == FLOWS

    asyncio.run(main())


def test_failed_wait_says_which_messages_came(postroom: Postroom, inbox: Inbox) -> None:
    app = postroom.create_inbox()
    send_code(app, inbox.address, "481516")
    assert inbox.code() == "481516"
    send_code(app, inbox.address, "234200")
    assert inbox.code() == "234200"
    app.send(to=inbox.address, subject="Welcome", text="Hello.")
    assert inbox.message(subject="welcome")["subject"] == "Welcome"
    with pytest.raises(WaitTimeoutError) as failed:
        inbox.code(sender="*@shop.example", timeout=1)
    assert "no message with a code from *@shop.example" in str(failed.value)
    assert "the sender is not *@shop.example, it has no code" in str(failed.value)
    assert "its code was returned before" in str(failed.value)
    assert len(failed.value.messages) == 3


def test_lists_errors_raw_and_events(postroom: Postroom, inbox: Inbox) -> None:
    for n in range(3):
        body = {"from": {"email": "a@b.example", "name": "Ana"}, "text": str(n)}
        postroom.request("POST", "/v1/inboxes/{inbox_id}/simulate", body=body, inbox_id=inbox.id)
    pages = postroom.list("/v1/inboxes/{inbox_id}/messages", query={"limit": 1}, inbox_id=inbox.id)
    messages = list(pages)
    assert len(messages) == 3
    assert b"a@b.example" in postroom.raw(messages[0]["id"])
    events = postroom.events(inbox_id=inbox.id, last_event_id="evt_0")
    assert next(e for e in events if e["object"] == "event")["type"] == "message.received"
    with pytest.raises(PostroomError) as refused:
        postroom.inbox("ibx_none")
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    assert (refused.value.request_id or "").startswith("req_")
    with pytest.raises(PostroomError) as refused:
        postroom.create_inbox(name="not a name!")
    assert refused.value.param == "name"


def test_resources() -> None:
    postroom = Postroom()
    made = postroom.templates.create(name="welcome", subject="Hello {{name}}", text="{{#if vip}}Dear {{/if}}{{name}}", idempotency_key="t")
    assert postroom.templates.preview(made["id"], data={"name": "Ana", "vip": True})["text"] == "Dear Ana"
    assert made["id"] in [t["id"] for t in postroom.templates.list(limit=1)]
    with postroom.create_inbox(retention_days=1, display_name="Shop") as inbox:
        domain = inbox.address.split("@")[1]
        sent = postroom.emails.send(from_=f"shop@{domain}", to=inbox.address, template="welcome", data={"name": "Ben"}, tags=[{"name": "a", "value": 1}])
        assert sent["object"] == "email" and inbox.message(timeout=30)["subject"] == "Hello Ben"
        assert postroom.inboxes.update(inbox.id, display_name=None)["display_name"] is None
    assert postroom.templates.delete(made["id"])["deleted"]
