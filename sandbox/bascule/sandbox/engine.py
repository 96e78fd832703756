"""The container engine: where it is, what it is, and calls to it that always end.

Speaks the Docker Engine API through the docker package, in threads, each call with a deadline. What the
engine says is trusted (who controls it controls the host) but its absence or slowness is an ordinary error.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from bascule.sandbox.api import EngineApi
from bascule.sandbox.errors import NotThere, SandboxError

DEFAULT_HOST = "unix:///var/run/docker.sock"

_LIMITS = {"memory": "MemoryLimit", "pids": "PidsLimit", "cpu": "CpuCfsQuota"}
"""What an engine says of its control groups."""

_PODMAN_SOCKET = "/run/podman/podman.sock"

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What ``bascule doctor`` says of an engine; all of it as the engine itself reports.

    Attributes:
        host: address that answered.
        cgroup_version: ``1`` or ``2``.
        security_options: for example ``name=seccomp,profile=default``, ``name=rootless``.
        local: it shares this machine's kernel and files (a unix socket).
        cannot_limit: of ``memory``, ``pids`` and ``cpu`` those for which it has no control group; it would
            take such a limit and discard it with a warning.
    """

    host: str
    name: str
    version: str
    api_version: str
    operating_system: str
    kernel: str
    architecture: str
    cgroup_version: str
    cgroup_driver: str
    storage_driver: str
    runtimes: tuple[str, ...]
    default_runtime: str
    security_options: tuple[str, ...]
    rootless: bool
    userns_remap: bool
    local: bool
    cannot_limit: frozenset[str] = frozenset()

    @property
    def is_podman(self) -> bool:
        """Whether it is podman behind Docker's API."""
        return "podman" in self.name.lower()


class Engine:
    """One engine, reached at one address.

    Args:
        docker_host: address; None takes ``DOCKER_HOST``, then the usual sockets.
        timeout_s: deadline of one call.
    """

    def __init__(self, *, docker_host: str | None = None, timeout_s: float = 10.0) -> None:
        self.host = docker_host or os.environ.get("DOCKER_HOST") or _usual_host()
        self.timeout_s = timeout_s
        _knock(self.host, timeout_s)
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="bascule-engine")
        docker, requests = _client_library()
        try:
            self.api: EngineApi = docker.APIClient(
                base_url=self.host, version="auto", timeout=timeout_s, **_tls(self.host)
            )
        except (docker.errors.DockerException, requests.RequestException, OSError, ValueError) as error:
            self._threads.shutdown(wait=False)
            raise unavailable(self.host, error) from error

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one blocking engine call in a thread.

        Raises:
            SandboxError: ``engine_timeout``, ``engine_unavailable``, ``image_missing`` or ``engine_failed``.
            NotThere: the container is not there (any more); callers that remove ignore it.
        """
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, lambda: self.call_now(function, *args, **kwargs))
        try:
            # The client's own timeout restarts with every byte received; this one does not.
            return await asyncio.wait_for(future, self.timeout_s + 1)
        except TimeoutError as error:
            raise self._timed_out(function) from error

    def call_now(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one engine call in this thread; raises as ``call`` does."""
        docker, requests = _client_library()
        try:
            return function(*args, **kwargs)
        except docker.errors.ImageNotFound as error:
            raise SandboxError(
                "image_missing",
                f"the engine has no such image ({error.explanation}); run `bascule image build`",
            ) from error
        except docker.errors.NotFound as error:
            raise NotThere(f"engine refused {_name(function)}: {error.explanation}") from error
        except docker.errors.APIError as error:
            raise SandboxError(
                "engine_failed", f"engine refused {_name(function)}: {error.explanation or error}"
            ) from error
        except requests.exceptions.Timeout as error:
            raise self._timed_out(function) from error
        except (requests.RequestException, docker.errors.DockerException, OSError) as error:
            raise unavailable(self.host, error) from error

    def info(self) -> EngineInfo:
        """Ask the engine what it is.

        Raises:
            SandboxError: as ``call``.
        """
        told = self.call_now(self.api.info)
        version = self.call_now(self.api.version)
        options = tuple(str(option) for option in told.get("SecurityOptions") or ())
        components: list[dict[str, Any]] = version.get("Components") or [{}]
        return EngineInfo(
            host=self.host,
            name=str(components[0].get("Name", "Engine")),
            version=str(told.get("ServerVersion", "")),
            api_version=str(version.get("ApiVersion", "")),
            operating_system=str(told.get("OperatingSystem", "")),
            kernel=str(told.get("KernelVersion", "")),
            architecture=str(told.get("Architecture", "")),
            cgroup_version=str(told.get("CgroupVersion", "")),
            cgroup_driver=str(told.get("CgroupDriver", "")),
            storage_driver=str(told.get("Driver", "")),
            runtimes=tuple(sorted(told.get("Runtimes") or ())),
            default_runtime=str(told.get("DefaultRuntime", "")),
            security_options=options,
            rootless="name=rootless" in options,
            userns_remap="name=userns" in options,
            local=self.local,
            cannot_limit=frozenset(kind for kind, name in _LIMITS.items() if told.get(name) is False),
        )

    @property
    def local(self) -> bool:
        """Whether the engine is on this machine."""
        return self.host.startswith("unix://")

    def close(self) -> None:
        """Close connections and threads; calls under way end in the background."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.api.close()

    def _timed_out(self, function: Callable[..., object]) -> SandboxError:
        return SandboxError(
            "engine_timeout",
            f"engine at {self.host} did not answer {_name(function)} within {self.timeout_s:g} s; "
            "look at the engine's log, or raise engine_timeout_s",
        )


def find_engine(docker_host: str | None = None, *, timeout_s: float = 10.0) -> EngineInfo:
    """Find an engine and say what it is.

    Raises:
        SandboxError: ``engine_unavailable`` names the address tried and the command that helps.
    """
    engine = Engine(docker_host=docker_host, timeout_s=timeout_s)
    try:
        return engine.info()
    finally:
        engine.close()


def unavailable(host: str, error: Exception) -> SandboxError:
    """Return the error for an engine that does not answer, with the command for this machine."""
    cause = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return SandboxError(
        "engine_unavailable",
        f"no container engine answers at {host} ({cause}); {_remedy(host)}. Bascule never falls back to a "
        'weaker isolation by itself: isolation="process" must be asked for by name',
    )


def _knock(host: str, timeout_s: float) -> None:
    """Connect once and hang up: docker-py leaks the socket of a client that could not be made.

    Raises:
        SandboxError: ``engine_unavailable``.
    """
    try:
        if host.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as channel:
                channel.settimeout(timeout_s)
                channel.connect(host.removeprefix("unix://"))
        elif host.startswith("tcp://"):
            address = urlsplit(host)
            socket.create_connection((address.hostname, address.port or 2375), timeout_s).close()
    except (OSError, ValueError) as error:
        raise unavailable(host, error) from error


def _remedy(host: str) -> str:
    path = host.removeprefix("unix://")
    if not host.startswith("unix://"):
        return "check DOCKER_HOST and that the remote engine listens"
    if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
        return "this user may not use it: run `sudo usermod -aG docker $USER` and log in again"
    if shutil.which("dockerd") is None:
        return "install one (Debian or Ubuntu: `apt-get install docker.io`) or set DOCKER_HOST"
    starts = "systemctl start docker" if os.path.isdir("/run/systemd/system") else "dockerd &"
    return f"start it: `{starts}`" if os.geteuid() == 0 else f"start it: `sudo {starts}`"


def _client_library() -> tuple[Any, Any]:
    """Import the client when an engine is really used: it costs every other user a fifth of a second."""
    import docker
    import requests

    return docker, requests


def _usual_host() -> str:
    """Return the first of the usual sockets that is there, Docker's own when none is."""
    runtime_dir = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    for path in (
        "/var/run/docker.sock",
        f"{runtime_dir}/docker.sock",
        f"{runtime_dir}/podman/podman.sock",
        _PODMAN_SOCKET,
    ):
        if os.path.exists(path) and os.access(path, os.R_OK | os.W_OK):
            return f"unix://{path}"
    return DEFAULT_HOST


def _tls(host: str) -> dict[str, Any]:
    """Return the client's TLS settings as the docker command reads them from the environment."""
    if host.startswith("unix://") or not os.environ.get("DOCKER_TLS_VERIFY"):
        return {}
    docker, _ = _client_library()
    folder = os.environ.get("DOCKER_CERT_PATH", os.path.expanduser("~/.docker"))
    return {
        "tls": docker.tls.TLSConfig(
            client_cert=(os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")),
            ca_cert=os.path.join(folder, "ca.pem"),
            verify=True,
        )
    }


def raw_socket(attached: Any) -> socket.socket:
    """Return the bare socket of docker-py's attach answer, owned by the caller.

    docker-py gives a ``SocketIO`` for plain HTTP and a socket for TLS; both stay tied to a response object
    that closes them when collected, hence a socket of its own for the descriptor.
    """
    inner: Any = getattr(attached, "_sock", attached)
    if type(inner) is not socket.socket:
        raise SandboxError(
            "engine_unavailable",
            "the engine is reached over TLS or ssh, which attached streams do not support yet; "
            "forward its socket (`ssh -L`) and set DOCKER_HOST to the local end",
        )
    return socket.socket(fileno=inner.detach())


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", "a call")
