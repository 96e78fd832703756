"""Sources of tools: what is opened first, and closed whatever happens."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bascule.tools import AnyTool, ToolLoadError, ToolSource, load_sources, load_tools, loading, tool
from bascule.tools.source import open_sources, opened, split_sources

pytestmark = pytest.mark.anyio


@tool(effects="read")
def near() -> str:
    """Be near."""
    return "near"


class Source:
    """Gives one tool, or fails."""

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name = name
        self.fails = fails
        self.log: list[str] = []

    async def open(self) -> list[AnyTool]:
        self.log.append("open")
        if self.fails:
            raise ToolLoadError("tool_source_broken", f"{self.name}: broken")

        @tool(name=self.name, effects="read")
        def far() -> str:
            """Be far."""
            return "far"

        return [far]

    async def close(self) -> None:
        self.log.append("close")


def read_source(spec: str, path: Path) -> ToolSource:
    return Source(path.stem)


async def test_sources_are_told_from_tools_and_functions() -> None:
    def plain() -> None:
        """Do nothing."""

    source = Source("far")
    assert split_sources([near, source, plain]) == ([near, plain], [source])


async def test_tools_of_sources_come_after_the_others_while_they_are_open() -> None:
    source = Source("far")
    async with opened([source, near]) as tools:
        assert [getattr(each, "name", None) for each in tools] == ["near", "far"]
        assert source.log == ["open"]
    assert source.log == ["open", "close"]


async def test_all_are_closed_when_one_cannot_be_opened() -> None:
    good, bad = Source("good"), Source("bad", fails=True)
    with pytest.raises(ToolLoadError, match="bad: broken"):
        async with AsyncExitStack() as stack:
            await open_sources([good, bad], stack)
    assert (good.log, bad.log) == (["open", "close"], ["open", "close"])


def test_a_document_is_read_by_the_reader_of_its_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "DOCUMENT_READERS", {".conf": f"{__name__}:read_source"})
    file = tmp_path / "far.conf"
    file.write_text("{}")
    (found,) = load_sources(str(file))
    assert found.name == "far"
    with pytest.raises(ToolLoadError, match="there is no file"):
        load_sources(str(tmp_path / "none.conf"))
    with pytest.raises(ToolLoadError, match="use load_sources"):
        load_tools(str(file))
