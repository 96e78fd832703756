"""Starts, feeds, limits and ends the sandboxes in which guests run; knows nothing of tools or policy.

Trusts the engine and this installation, never a guest.
"""

from bascule.sandbox.backend import Isolation, build_bundle, open_backend
from bascule.sandbox.context import build_context
from bascule.sandbox.differences import (
    describe_differences,
    describe_machines,
    unused_runtimes,
    usable_runtimes,
)
from bascule.sandbox.engine import EngineInfo, find_engine
from bascule.sandbox.errors import SandboxClosed, SandboxError, image_mismatch
from bascule.sandbox.image import (
    GuestImage,
    build_image,
    ensure_image,
    remove_images,
)
from bascule.sandbox.image_contents import ImageContents, inspect_contents, read_sbom
from bascule.sandbox.limits import PoolLimits, SandboxLimits
from bascule.sandbox.oci_bundle import bundle_sbom
from bascule.sandbox.oci_runtime import DIFFERENCES as RUNTIME_DIFFERENCES
from bascule.sandbox.oci_runtime import installed_runtimes, runtime_differences
from bascule.sandbox.pool import Reuse, WarmPool
from bascule.sandbox.process import WEAKER
from bascule.sandbox.process_walls import DIFFERENCES as PROCESS_DIFFERENCES
from bascule.sandbox.sandbox import Backend, Ending, Sandbox
from bascule.sandbox.ungrouped import engine_differences

__all__ = [
    "PROCESS_DIFFERENCES",
    "RUNTIME_DIFFERENCES",
    "WEAKER",
    "Backend",
    "Ending",
    "EngineInfo",
    "GuestImage",
    "ImageContents",
    "Isolation",
    "PoolLimits",
    "Reuse",
    "Sandbox",
    "SandboxClosed",
    "SandboxError",
    "SandboxLimits",
    "WarmPool",
    "build_bundle",
    "build_context",
    "build_image",
    "bundle_sbom",
    "describe_differences",
    "describe_machines",
    "engine_differences",
    "ensure_image",
    "find_engine",
    "image_mismatch",
    "inspect_contents",
    "installed_runtimes",
    "open_backend",
    "read_sbom",
    "remove_images",
    "runtime_differences",
    "unused_runtimes",
    "usable_runtimes",
]
