"""What the host delivers, as plain data. Trusts the host's bytes; they came through the wire's decoder."""

from __future__ import annotations

import gc

import msgspec

_GC_OFF_BYTES = 64 << 10
"""Above this the cycle collector is off while decoding: it makes big results cost more than linear time."""

_decode = msgspec.json.Decoder().decode


def decode_value(raw: msgspec.Raw) -> object:
    """Return the value of a delivery."""
    if len(raw) <= _GC_OFF_BYTES or not gc.isenabled():
        return _decode(raw)
    gc.disable()
    try:
        return _decode(raw)
    finally:
        gc.enable()
