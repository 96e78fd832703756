"""The table of settings: order of sources, bounds, what is refused, and that the docs list every row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge.errors import LimitsError
from bascule.console.settings import Settings, read_settings
from bascule.console.settings_table import SERVE_SETTINGS

DOCS = Path(__file__).parents[3] / "docs" / "console.md"


def test_flags_win_over_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("port: 1\nhost: 10.0.0.1\ntools: [a.py]\ngrace_s: 3\ncalls: 7\n", "utf-8")
    environment = {"BASCULE_PORT": "2", "BASCULE_GRACE_S": "4", "BASCULE_HOST_NAMES": "a, b"}
    read = read_settings({"port": 3, "tools": [], "policy": None}, environment, file=file)
    assert (read.port, read.grace_s, read.host, read.tools) == (3, 4.0, "10.0.0.1", ("a.py",))
    assert read.host_names == ("a", "b")
    assert read.limits == {"calls": 7}
    assert read_settings({}, {}) == Settings()


@pytest.mark.parametrize(
    ("given", "environment", "file"),
    [
        ({"port": 70_000}, {}, ""),
        ({}, {"BASCULE_PORT": "many"}, ""),
        ({}, {"BASCULE_UNSAFE_PROCESS_ISOLATION": "maybe"}, ""),
        ({}, {}, "prot: 1\n"),
        ({}, {}, "port: '8321'\n"),
        ({}, {}, "port: true\n"),
        ({}, {}, "tools: [1]\n"),
        ({}, {}, "calls: yes\n"),
        ({}, {}, "- port\n"),
        ({"public_url": "console.example.com"}, {}, ""),
        ({"public_url": "https://"}, {}, ""),
        ({"public_url": "http://[::1"}, {}, ""),
        ({"isolation": "process"}, {}, ""),
        ({"isolation": "none"}, {}, ""),
        ({"trusted_proxies": ["10.0.0.1"]}, {}, ""),
        ({"trusted_proxies": ["proxy"], "proxy_secret_file": "x"}, {}, ""),
    ],
)
def test_what_cannot_be_used_is_refused(
    tmp_path: Path, given: dict[str, Any], environment: dict[str, str], file: str
) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text(file, "utf-8")
    with pytest.raises(LimitsError):
        read_settings(given, environment, file=path if file else None)


def test_process_isolation_needs_to_be_accepted_by_name() -> None:
    assert Settings(isolation="process", unsafe_process_isolation=True).isolation == "process"


def test_defaults_are_those_of_the_table() -> None:
    settings = Settings()
    assert {row.name: getattr(settings, row.name) for row in SERVE_SETTINGS} == {
        row.name: row.default for row in SERVE_SETTINGS
    }


def test_every_setting_is_documented_with_its_bounds() -> None:
    rows = re.findall(
        r"^\| `(--[a-z-]+)` \| `(BASCULE_[A-Z_]+)` \| .* \| (.+) \|$", DOCS.read_text("utf-8"), re.M
    )
    assert [(flag, name) for flag, name, _ in rows] == [(row.flag, row.environment) for row in SERVE_SETTINGS]
    for row, (_, _, text) in zip(SERVE_SETTINGS, rows, strict=True):
        assert text.startswith(row.help)
        if row.maximum:
            assert f"From {row.minimum:,} to {row.maximum:,}" in text
