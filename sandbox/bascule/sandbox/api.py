"""The calls of the Docker Engine API that we make, typed; the docker package's own client has few types.

A short list is also a review aid: nothing else is ever asked of an engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class EngineApi(Protocol):
    """The part of ``docker.APIClient`` in use. All methods block and raise the docker package's errors."""

    def info(self) -> dict[str, Any]: ...

    def version(self) -> dict[str, Any]: ...

    def create_container_from_config(
        self, config: Mapping[str, object], name: str | None = None
    ) -> dict[str, Any]: ...

    def attach_socket(self, container: str, params: Mapping[str, int]) -> object: ...

    def start(self, container: str) -> None: ...

    def kill(self, container: str, signal: str) -> None: ...

    def wait(self, container: str, timeout: float) -> dict[str, Any]: ...

    def inspect_container(self, container: str) -> dict[str, Any]: ...

    def remove_container(self, container: str, *, v: bool, force: bool) -> None: ...

    def containers(self, *, all: bool, filters: Mapping[str, str]) -> list[dict[str, Any]]: ...

    def logs(self, container: str, *, tail: int) -> bytes: ...

    def export(self, container: str) -> Iterable[bytes]: ...

    def put_archive(self, container: str, path: str, data: bytes) -> bool: ...

    def images(self, *, filters: Mapping[str, str]) -> list[dict[str, Any]]: ...

    def inspect_image(self, image: str) -> dict[str, Any]: ...

    def remove_image(self, image: str, *, force: bool) -> object: ...

    def tag(self, image: str, repository: str, tag: str) -> bool: ...

    def pull(self, repository: str) -> str: ...

    def import_image_from_data(
        self, data: bytes, *, repository: str, tag: str, changes: list[str]
    ) -> str: ...

    def build(
        self,
        *,
        fileobj: object,
        custom_context: bool,
        tag: str,
        buildargs: Mapping[str, str],
        labels: Mapping[str, str],
        rm: bool,
        forcerm: bool,
        decode: bool,
        network_mode: str,
    ) -> Iterable[dict[str, Any]]: ...

    def close(self) -> None: ...
