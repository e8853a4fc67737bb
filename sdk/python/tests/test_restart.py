"""A test against a real server that ends and starts again on a POST to RESTART_URL."""

from __future__ import annotations

import os
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from postroom import Postroom


def restart() -> None:
    with urllib.request.urlopen(urllib.request.Request(os.environ["RESTART_URL"], method="POST")) as response:
        assert response.status == 200


@pytest.mark.skipif("RESTART_URL" not in os.environ, reason="needs a server that restarts")
def test_a_restart_in_the_middle_of_each_call_loses_and_repeats_nothing() -> None:
    postroom = Postroom(attempts=1000, retry_for=120.0)
    shop, inbox = postroom.create_inbox(), postroom.create_inbox()

    opened = threading.Event()

    def follow() -> list[str]:
        received: list[str] = []
        for event in postroom.events(inbox_id=inbox.id, last_event_id="evt_0"):
            opened.set()  # the first event is the gap
            if event["object"] == "event" and event["type"] == "message.received":
                received.append(event["id"])
                if len(received) == 11:
                    break
        return received

    with ThreadPoolExecutor(12) as threads:
        waiting = threads.submit(inbox.code, timeout=120)
        following = threads.submit(follow)
        assert opened.wait(60)
        restart()  # during the wait and the stream

        subjects = [f"Message {n}" for n in range(10)]
        sends = [threads.submit(shop.send, to=inbox.address, subject=s, text="Hello.") for s in subjects]
        restart()  # during the sends
        for send in sends:
            send.result()
        shop.send(to=inbox.address, subject="Message code", text="Your verification code is 482913.")
        assert waiting.result() == "482913"
        assert len(set(following.result())) == 11

    listed: list[str] = []
    for message in postroom.list("/v1/inboxes/{inbox_id}/messages", query={"limit": 4}, inbox_id=inbox.id):
        listed.append(message["subject"])
        if len(listed) == 4:
            restart()  # between pages
    assert sorted(listed) == sorted([*subjects, "Message code"])
