"""Signatures of the Standard Webhooks, as docs/webhooks.md tells it."""

import base64
import hashlib
import hmac
import time


def is_signed(secret, headers, body):
    try:
        moment = int(headers["webhook-timestamp"])
    except (TypeError, ValueError):
        return False
    if abs(time.time() - moment) > 300:
        return False  # somebody plays an old one again
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{headers['webhook-id']}.{moment}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(wanted.encode(), given.encode()) for given in (headers["webhook-signature"] or "").split())
