"""The bytes that stand for a block's KV data: a function of its key alone, so that what comes back can be checked.

Not for storing them: `stores/disk_values.py` puts a header and a checksum in front.
"""

from __future__ import annotations

import hashlib

_SEED = b"kvtier payload 1\0"
_PERIOD = 65_521
"""Longer payloads repeat. The period is a prime, so no two pages of a payload are alike: a page read from the wrong
place of the right file is noticed."""


def payload_for(key: str | bytes, length: int) -> bytes:
    """The `length` bytes of block `key`; the same in every run. A text stands for its UTF-8."""
    name = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
    pattern = hashlib.shake_256(_SEED + name).digest(min(length, _PERIOD))
    if length <= _PERIOD:
        return pattern
    return (pattern * (length // _PERIOD + 1))[:length]


def check(key: str | bytes, payload: bytes) -> bool:
    """Whether `payload` is what block `key` was given, at that length."""
    return payload == payload_for(key, len(payload))
