"""Verification of webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import WebhookVerificationError

_TOLERANCE = 5 * 60


def verify_webhook(body: bytes | str, headers: Mapping[str, str], secrets: str | Iterable[str]) -> dict[str, Any]:
    """Verify a webhook (https://www.standardwebhooks.com) and return its event.

    body must be as received. A signature by any of the secrets is enough, so that secrets
    can be rotated. An event can arrive more than once, with the same ID each time.
    """
    content = body.encode() if isinstance(body, str) else body
    given = {name.lower(): value for name, value in headers.items()}
    event_id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not event_id or not (timestamp.isascii() and timestamp.isdigit()):
        raise WebhookVerificationError("webhook-id or webhook-timestamp is missing")
    if abs(time.time() - int(timestamp)) > _TOLERANCE:
        raise WebhookVerificationError("the timestamp is more than 5 minutes from now")
    signed = f"{event_id}.{timestamp}.".encode() + content
    signatures = given.get("webhook-signature", "").split()
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
        if not key:
            raise ValueError("a webhook secret is whsec_ and base64")
        digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
        want = b"v1," + digest
        if any(hmac.compare_digest(want, s.encode()) for s in signatures):
            event: dict[str, Any] = json.loads(content)
            return event
    raise WebhookVerificationError("no signature is by one of the secrets")
