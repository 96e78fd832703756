"""What a base says of its packages, exact or from changelogs, and nothing that a damaged file could break."""

from __future__ import annotations

import gzip

from bascule.sandbox.sbom import STATUS_FILE, read_packages

STATUS = b"""Package: libc6
Status: install ok installed
Version: 2.36-9+deb12u10
Description: GNU C Library
 Package: not a field

Package: gone
Status: deinstall ok config-files
Version: 1

"""


def test_the_status_of_dpkg_is_exact() -> None:
    assert read_packages({STATUS_FILE: STATUS}) == [
        {"name": "libc6", "version": "2.36-9+deb12u10", "from": "dpkg"}
    ]


def test_changelogs_are_taken_where_packages_were_only_unpacked() -> None:
    changelog = gzip.compress(b"tzdata (2025b-0+deb12u1) bookworm; urgency=medium\n\n  * New.\n")
    assert read_packages({"usr/share/doc/tzdata/changelog.Debian.gz": changelog, STATUS_FILE: b""}) == [
        {"name": "tzdata", "version": "2025b-0+deb12u1", "from": "changelog"}
    ]


def test_a_package_that_shares_anothers_documentation_has_its_version() -> None:
    changelog = gzip.compress(b"python3.11 (3.11.2-6) bookworm; urgency=medium\n")
    folder = "usr/share/doc/libpython3.11"
    files = {f"{folder}-minimal/changelog.Debian.gz": changelog, f"{folder}-stdlib": b"libpython3.11-minimal"}
    found = read_packages(files)
    assert [(each["name"], each["version"]) for each in found] == [
        ("libpython3.11-minimal", "3.11.2-6"),
        ("libpython3.11-stdlib", "3.11.2-6"),
    ]


def test_dpkg_wins_over_a_changelog() -> None:
    changelog = gzip.compress(b"glibc (2.36-9) bookworm; urgency=medium\n")
    found = read_packages({"usr/share/doc/libc6/changelog.Debian.gz": changelog, STATUS_FILE: STATUS})
    assert [each["from"] for each in found] == ["dpkg"]


def test_what_is_damaged_is_left_out() -> None:
    good = gzip.compress(b"x (1) y; urgency=low\n")
    files = {
        "usr/share/doc/cut/changelog.gz": good[:8],
        "usr/share/doc/text/changelog.gz": b"plain",
        "usr/share/doc/odd/changelog.gz": gzip.compress(b"no entry at all\n"),
    }
    assert read_packages(files) == []
