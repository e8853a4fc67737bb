"""Inboxes for programs, tests and AI agents: the client of Postroom."""

from .aio import AsyncInbox, AsyncPostroom
from .client import Inbox, Postroom
from .errors import PostroomError, WaitTimeoutError, WebhookVerificationError
from .webhook import verify_webhook

__all__ = [
    "AsyncInbox",
    "AsyncPostroom",
    "Inbox",
    "Postroom",
    "PostroomError",
    "WaitTimeoutError",
    "WebhookVerificationError",
    "verify_webhook",
]
