"""What host and guest say to each other: frames, their codec, and the errors both name.

The only package that runs on both sides of the wall. It trusts nothing it decodes.
"""

from bascule.wire.codec import FrameSplitter, decode_guest_frame, decode_host_frame, encode_frame
from bascule.wire.errors import BasculeError, FrameError
from bascule.wire.frames import (
    PROTOCOL,
    Act,
    Activation,
    Call,
    Cancel,
    Delivery,
    Done,
    Finish,
    GuestLimits,
    GuestUsage,
    Hello,
    Note,
    Output,
    ScriptError,
    Sleep,
    Start,
    ToolFailure,
    ToolStub,
)

__all__ = [
    "PROTOCOL",
    "Act",
    "Activation",
    "BasculeError",
    "Call",
    "Cancel",
    "Delivery",
    "Done",
    "Finish",
    "FrameError",
    "FrameSplitter",
    "GuestLimits",
    "GuestUsage",
    "Hello",
    "Note",
    "Output",
    "ScriptError",
    "Sleep",
    "Start",
    "ToolFailure",
    "ToolStub",
    "decode_guest_frame",
    "decode_host_frame",
    "encode_frame",
]
