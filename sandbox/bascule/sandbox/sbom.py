"""The bill of materials of the guest image: CycloneDX 1.5, made at build time, equal for equal contents.

Packages of the base are read from what the base itself says of them, wheels from their pinned files. No time
stamp and no random number: equal images have equal bills.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import uuid
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

from bascule.sandbox.wheels import Target, pinned_wheels

PACKAGES_FILE: Final = "usr/share/bascule/packages.json"
"""In the base: what it was made from, as a list of name, version and how the version is known."""

SBOM_FILE: Final = "SBOM.json"
"""In the guest's folder."""

STATUS_FILE: Final = "var/lib/dpkg/status"
CHANGELOG: Final = re.compile(r"usr/share/doc/([a-z0-9][a-z0-9+.-]+)/changelog(\.Debian)?\.gz")
DOC_LINK: Final = re.compile(r"usr/share/doc/([a-z0-9][a-z0-9+.-]+)")
"""A package that shares another's documentation, being from the same source: a link to the other's name."""

_FIELD: Final = re.compile(r"[A-Z][\w-]*: ")
_ENTRY: Final = re.compile(r"^[a-z0-9][a-z0-9+.-]* \(([^)\s]{1,100})\)")
_MAX_CHANGELOG_BYTES: Final = 1 << 16


def read_packages(files: Mapping[str, bytes]) -> list[dict[str, str]]:
    """Return name and version of each package of a base.

    Args:
        files: dpkg's status file and changelogs by path, those that there are, and links between folders of
            documentation. The status is exact; where packages were only unpacked there is none, and the
            newest entry of each changelog is taken.
    """
    found: dict[str, dict[str, str]] = {}
    for path, content in files.items():
        match = CHANGELOG.fullmatch(path)
        entry = None if match is None else _ENTRY.match(_start_of(content))
        if match is not None and entry is not None:
            found[match[1]] = {"name": match[1], "version": entry[1], "from": "changelog"}
    for path, target in files.items():
        link = DOC_LINK.fullmatch(path)
        other = found.get(target.decode("utf-8", "replace")) if link is not None else None
        if link is not None and other is not None:
            found.setdefault(link[1], {**other, "name": link[1]})
    for paragraph in files.get(STATUS_FILE, b"").decode("utf-8", "replace").split("\n\n"):
        lines = [line for line in paragraph.splitlines() if _FIELD.match(line)]
        fields = dict(line.split(": ", 1) for line in lines)
        if "Package" in fields and fields.get("Status", "").endswith(" installed"):
            name = fields["Package"]
            found[name] = {"name": name, "version": fields.get("Version", ""), "from": "dpkg"}
    return [found[name] for name in sorted(found)]


def packages_file(files: Mapping[str, bytes]) -> bytes:
    """Return the content of ``PACKAGES_FILE``."""
    return json.dumps(read_packages(files), indent=1).encode() + b"\n"


def make_sbom(packages: bytes, *, requirements: bytes, target: Target, image_hash: str) -> bytes:
    """Return the bill of a guest image as JSON.

    Args:
        packages: content of ``PACKAGES_FILE`` of its base.
        requirements: the pinned wheels.
        target: the Python they are for.
        image_hash: of the guest image.
    """
    listed: list[dict[str, str]] = json.loads(packages)
    components = [_debian(each) for each in listed]
    components += [
        {
            "type": "library",
            "name": wheel.name,
            "version": wheel.version,
            "purl": f"pkg:pypi/{wheel.name.lower()}@{wheel.version}",
            "hashes": [{"alg": "SHA-256", "content": wheel.sha256}],
        }
        for wheel in pinned_wheels(requirements, target)
    ]
    own = version("bascule")
    purl = f"pkg:pypi/bascule@{own}"
    components.append({"type": "library", "name": "bascule", "version": own, "purl": purl})
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, image_hash)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "name": "bascule-guest",
                "version": image_hash[:12],
                "hashes": [{"alg": "SHA-256", "content": image_hash}],
            }
        },
        "components": components,
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def digest_of(sbom: bytes) -> str:
    """Return what the image's label says of its bill."""
    return hashlib.sha256(sbom).hexdigest()


def _debian(package: dict[str, str]) -> dict[str, Any]:
    name, number = package["name"], package["version"]
    return {
        "type": "library",
        "name": name,
        "version": number,
        "purl": f"pkg:deb/debian/{name}@{number.replace('+', '%2B').replace('~', '%7E')}",
        "properties": [{"name": "bascule:version-from", "value": package["from"]}],
    }


def _start_of(content: bytes) -> str:
    """Return the first lines of a compressed changelog; damaged ones are empty."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            return file.read(_MAX_CHANGELOG_BYTES).decode("utf-8", "replace")
    except (OSError, EOFError):
        return ""
