"""The table of settings of ``bascule serve``: flags, environment names, file keys and docs are made from it.

Imports nothing heavy, so that the command line can show its help at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from bascule.bridge.settings import MIB

Kind = Literal["text", "texts", "whole", "seconds", "flag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSetting:
    """One row.

    Attributes:
        name: field of `Settings` and key in the file; the flag is ``--name-with-dashes``, the environment
            name ``BASCULE_NAME``. ``texts`` are given as a repeated flag, in the environment with commas.
        minimum, maximum: bounds of numbers.
    """

    name: str
    kind: Kind
    default: Any
    help: str
    minimum: float = 0
    maximum: float = 0

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def environment(self) -> str:
        return "BASCULE_" + self.name.upper()


SERVE_SETTINGS: Final[tuple[ServeSetting, ...]] = (
    ServeSetting(name="store", kind="text", default="bascule.db", help="File that keeps runs and approvals."),
    ServeSetting(
        name="tools", kind="texts", default=(), help="module:attr, module, file.py or file.py:attr."
    ),
    ServeSetting(
        name="search_tools",
        kind="flag",
        default=False,
        help="Scripts may call search_tools and describe_tool.",
    ),
    ServeSetting(
        name="scratch",
        kind="flag",
        default=False,
        help="Scripts may keep data: store.put, store.get, store.slice, read_output.",
    ),
    ServeSetting(name="policy", kind="texts", default=(), help="YAML rule files, layers of the policy."),
    ServeSetting(
        name="isolation",
        kind="text",
        default="container",
        help="container, oci, or process, which also needs --unsafe-process-isolation.",
    ),
    ServeSetting(
        name="unsafe_process_isolation",
        kind="flag",
        default=False,
        help="Accept that isolation process is weaker than a container.",
    ),
    ServeSetting(name="docker_host", kind="text", default="", help="Address of the engine."),
    ServeSetting(name="runtime", kind="text", default="", help="Container runtime, as the engine names it."),
    ServeSetting(name="host", kind="text", default="127.0.0.1", help="Address to listen on."),
    ServeSetting(
        name="port", kind="whole", default=8321, minimum=0, maximum=65535, help="Port; 0 takes a free one."
    ),
    ServeSetting(
        name="public_url",
        kind="text",
        default="",
        help="How people reach the console, for links in notifications; https behind a proxy.",
    ),
    ServeSetting(
        name="host_names",
        kind="texts",
        default=(),
        help="Further names (name or name:port) that requests may be addressed to.",
    ),
    ServeSetting(
        name="trusted_proxies",
        kind="texts",
        default=(),
        help="Addresses or networks of proxies whose identity headers are believed.",
    ),
    ServeSetting(
        name="proxy_secret_file",
        kind="text",
        default="",
        help="File with the secret that such a proxy sends as X-Bascule-Proxy-Secret.",
    ),
    ServeSetting(
        name="proxy_admin_group",
        kind="text",
        default="bascule-admins",
        help="Group whose members are admins.",
    ),
    ServeSetting(
        name="proxy_operator_group",
        kind="text",
        default="bascule-operators",
        help="Group whose members are operators; everybody else is a viewer.",
    ),
    ServeSetting(
        name="session_s",
        kind="seconds",
        default=43_200.0,
        minimum=60,
        maximum=2_592_000,
        help="Time until a browser must log in again.",
    ),
    ServeSetting(
        name="body_bytes",
        kind="whole",
        default=4 * MIB,
        minimum=64 << 10,
        maximum=64 * MIB,
        help="Largest body of a request, in bytes.",
    ),
    ServeSetting(
        name="body_s",
        kind="seconds",
        default=20.0,
        minimum=1,
        maximum=600,
        help="Time in which a request must have arrived.",
    ),
    ServeSetting(
        name="requests_per_minute",
        kind="whole",
        default=1200,
        minimum=10,
        maximum=1_000_000,
        help="Requests of one principal in a minute before it is told to wait.",
    ),
    ServeSetting(
        name="connections",
        kind="whole",
        default=1000,
        minimum=10,
        maximum=100_000,
        help="Connections served at once; further ones are told to come back.",
    ),
    ServeSetting(
        name="live_subscribers",
        kind="whole",
        default=500,
        minimum=1,
        maximum=50_000,
        help="Streams of live events served at once.",
    ),
    ServeSetting(
        name="runs_at_once",
        kind="whole",
        default=64,
        minimum=1,
        maximum=1024,
        help="Runs worked on at once; further submissions are told to come back.",
    ),
    ServeSetting(
        name="grace_s",
        kind="seconds",
        default=20.0,
        minimum=1,
        maximum=600,
        help="Time at the end for calls that are running, before their runs are left as they are.",
    ),
    ServeSetting(
        name="webhooks_file",
        kind="text",
        default="",
        help="YAML file of webhooks to notify; see docs/console.md.",
    ),
)
"""All settings of ``bascule serve``, in the order they are documented."""
