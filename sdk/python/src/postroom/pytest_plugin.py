"""Fixtures for pytest: postroom, and inbox, which each test has to itself.

    def test_signup(inbox):
        sign_up(inbox.address)
        assert inbox.code() == ...
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .client import Inbox, Postroom


@pytest.fixture(scope="session")
def postroom() -> Postroom:
    """A client with the key in POSTROOM_KEY and the address in POSTROOM_URL."""
    return Postroom()


@pytest.fixture
def inbox(postroom: Postroom) -> Iterator[Inbox]:
    """An inbox that is deleted after the test."""
    with postroom.create_inbox(retention_days=1) as made:
        yield made
