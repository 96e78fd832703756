"""The settings of ``bascule serve``, read from flags, environment and a file, in this order.

Values come from the operator. The limits of runs are rows of `bascule.bridge.settings.SETTINGS`; the same
file and environment may set them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bascule.bridge.errors import LimitsError
from bascule.bridge.settings import MIB, SETTINGS
from bascule.console.settings_table import SERVE_SETTINGS, Kind, ServeSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the console is served; see `SERVE_SETTINGS`.

    Attributes:
        limits: values for limits of runs, by name.
    """

    store: str = "bascule.db"
    tools: tuple[str, ...] = ()
    search_tools: bool = False
    scratch: bool = False
    policy: tuple[str, ...] = ()
    isolation: str = "container"
    unsafe_process_isolation: bool = False
    docker_host: str = ""
    runtime: str = ""
    host: str = "127.0.0.1"
    port: int = 8321
    public_url: str = ""
    host_names: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    proxy_secret_file: str = ""
    proxy_admin_group: str = "bascule-admins"
    proxy_operator_group: str = "bascule-operators"
    session_s: float = 43_200.0
    body_bytes: int = 4 * MIB
    body_s: float = 20.0
    requests_per_minute: int = 1200
    connections: int = 1000
    live_subscribers: int = 500
    runs_at_once: int = 64
    grace_s: float = 20.0
    webhooks_file: str = ""
    limits: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        if self.isolation not in ("container", "oci", "process"):
            raise LimitsError(f"isolation must be container, oci or process, not {self.isolation!r}")
        if self.isolation == "process" and not self.unsafe_process_isolation:
            raise LimitsError(
                "isolation process is weaker than a container; a server takes it only with"
                " --unsafe-process-isolation"
            )
        if self.public_url and not _is_address(self.public_url):
            raise LimitsError(
                f"public_url must be http:// or https:// with a host, not {self.public_url!r:.100}"
            )
        if self.trusted_proxies and not self.proxy_secret_file:
            raise LimitsError("trusted_proxies needs proxy_secret_file: an address alone can be forged")
        for each in self.trusted_proxies:
            try:
                ipaddress.ip_network(each, strict=False)
            except ValueError as error:
                raise LimitsError(f"trusted_proxies: {error}") from error

    @property
    def base_url(self) -> str:
        """How the console is reached, without a slash at the end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def read_settings(
    given: Mapping[str, Any], environment: Mapping[str, str], *, file: Path | None = None
) -> Settings:
    """Return settings from flags, then environment, then file.

    Args:
        given: values by name; None and empty lists mean not given.

    Raises:
        LimitsError: a value cannot be used, or the file has a key that is no setting.
    """
    values: dict[str, Any] = {}
    limits: dict[str, float] = {}
    rows = {row.name: row for row in SERVE_SETTINGS}
    limit_names = {row.name for row in SETTINGS}
    for name, value in (_read_file(file) if file is not None else {}).items():
        if name in rows:
            values[name] = _from_file(rows[name], value)
        elif name in limit_names and isinstance(value, int | float) and not isinstance(value, bool):
            limits[name] = value
        else:
            raise LimitsError(
                f"{file}: {name}: {'must be a number' if name in limit_names else 'no setting'}"
            )
    for row in SERVE_SETTINGS:
        text = environment.get(row.environment)
        if text is not None:
            values[row.name] = _from_text(row, text)
        flag = given.get(row.name)
        if flag is not None and flag != []:
            values[row.name] = _check(row, tuple(flag) if row.kind == "texts" else flag)
    known = {each.name for each in fields(Settings)}
    return Settings(**{name: value for name, value in values.items() if name in known}, limits=limits)


def _read_file(path: Path) -> dict[str, Any]:
    from bascule.bridge.plain_yaml import parse_yaml  # only who has a file pays for the import

    try:
        read = parse_yaml(path.read_bytes())
    except (OSError, ValueError) as error:
        raise LimitsError(f"{path} cannot be read: {error}") from error
    if not isinstance(read, dict):
        raise LimitsError(f"{path} must hold settings, one `name: value` a line")
    return {str(name): value for name, value in read.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _from_file(row: ServeSetting, value: Any) -> Any:
    if row.kind == "texts":
        listed: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
        if not all(isinstance(each, str) for each in listed):
            raise LimitsError(f"{row.name} must be a list of texts")
        return tuple(listed)
    kinds: dict[Kind, type | tuple[type, ...]] = {
        "text": str,
        "flag": bool,
        "whole": int,
        "seconds": (int, float),
    }
    wanted = kinds[row.kind]
    if not isinstance(value, wanted) or (row.kind in ("whole", "seconds") and isinstance(value, bool)):
        raise LimitsError(f"{row.name} must be {_WORDS[row.kind]}, not {value!r}")
    return _check(row, value)


def _from_text(row: ServeSetting, text: str) -> Any:
    match row.kind:
        case "text":
            return text
        case "texts":
            return tuple(part.strip() for part in text.split(",") if part.strip())
        case "flag":
            if text.lower() not in ("0", "1", "true", "false"):
                raise LimitsError(f"{row.environment} must be 1 or 0, not {text!r}")
            return text.lower() in ("1", "true")
        case "whole" | "seconds":
            try:
                return _check(row, int(text) if row.kind == "whole" else float(text))
            except ValueError:
                raise LimitsError(f"{row.environment} must be {_WORDS[row.kind]}, not {text!r}") from None


def _check(row: ServeSetting, value: Any) -> Any:
    if row.kind in ("whole", "seconds") and not row.minimum <= value <= row.maximum:
        raise LimitsError(f"{row.name} must be between {row.minimum:g} and {row.maximum:g}, not {value!r}")
    return value


_WORDS: Final[Mapping[str, str]] = {
    "text": "a text",
    "flag": "true or false",
    "whole": "a whole number",
    "seconds": "a number of seconds",
}
