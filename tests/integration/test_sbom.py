"""The bill of materials: what is in the image is on it, and both builders of the image write the same."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from bascule.sandbox import (
    GuestImage,
    SandboxError,
    build_bundle,
    bundle_sbom,
    read_sbom,
)

pytestmark = pytest.mark.engine


def components(sbom: bytes) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(sbom)["components"]}


def test_the_bill_names_packages_wheels_and_ourselves(guest_image: GuestImage) -> None:
    found = components(read_sbom(guest_image.tag))
    python = f"libpython{guest_image.base.python}-stdlib"
    assert {python, "libc6", "RestrictedPython", "msgspec", "bascule"} <= {
        name.replace("restrictedpython", "RestrictedPython") for name in found
    }
    assert found[python]["version"].startswith(guest_image.base.python)
    assert len(found["msgspec"]["hashes"][0]["content"]) == 64


def test_the_bill_is_about_this_image_and_without_time_or_chance(guest_image: GuestImage) -> None:
    sbom = read_sbom(guest_image.tag)
    told = json.loads(sbom)
    assert told["metadata"]["component"]["hashes"][0]["content"] == guest_image.hash
    assert "timestamp" not in told["metadata"]
    assert read_sbom(guest_image.tag) == sbom


def test_the_unpacked_image_has_the_same_bill(guest_image: GuestImage) -> None:
    try:
        bundle = build_bundle()
    except SandboxError as error:
        pytest.skip(error.message)
    assert components(bundle_sbom(bundle)).keys() == components(read_sbom(guest_image.tag)).keys()


def test_the_command_prints_it(guest_image: GuestImage) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from bascule.cli.main import main; main()", "image", "sbom"],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["bomFormat"] == "CycloneDX"


def test_an_image_that_is_not_ours_has_no_bill(guest_image: GuestImage) -> None:
    with pytest.raises(SandboxError) as caught:
        read_sbom(guest_image.base.tag)
    assert caught.value.code == "image_mismatch"
