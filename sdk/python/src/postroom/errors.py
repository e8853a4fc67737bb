"""Errors of the client."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any


class PostroomError(Exception):
    """The server refused a request."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        request_id: str | None = None,
        details: Sequence[Mapping[str, Any]] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.request_id = request_id
        self.details = details
        self.retry_after = retry_after

    @property
    def temporary(self) -> bool:
        """Whether the same request can succeed later."""
        return self.code in ("rate_limited", "idempotency_in_progress") or self.status in (502, 503, 504)


class WaitTimeoutError(TimeoutError):
    """No matching message came in time. The text lists those that came, and why they do not match."""

    def __init__(self, text: str, messages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(text)
        self.messages = messages


class WebhookVerificationError(ValueError):
    """A webhook is forged, damaged or too old. Respond with 401 and ignore the content."""


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> PostroomError:
    """Return the error of a response."""
    try:
        error = json.loads(body)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):  # from a proxy in front of the server
        error, code = {}, "unknown"
        message = f"HTTP status {status}: {body[:200].decode(errors='replace')}"
    return PostroomError(
        status,
        code,
        message,
        param=error.get("param"),
        request_id=error.get("request_id") or headers.get("x-request-id"),
        details=error.get("details", ()),
        retry_after=_retry_after(headers.get("retry-after")),
    )


def _retry_after(value: str | None) -> float | None:
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
