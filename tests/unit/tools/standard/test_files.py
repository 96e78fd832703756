"""Files below one folder, and everything that tries to lead out of it."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from bascule.tools import AnyTool, ArgumentsInvalid
from bascule.tools.standard import file_search, files
from bascule.tools.standard.confined import Confined
from tests.unit.tools.standard.calling import NOBODY, call

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "root"
    (inside / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    (inside / "a.txt").write_text("alpha\nBeta\ngamma\n")
    (inside / "docs" / "b.md").write_text("# beta\n")
    (inside / "docs" / "deep" / "c.txt").write_text("deep beta\n")
    (inside / ".env").write_text("KEY=1")
    return inside


@pytest.fixture
def tools(root: Path) -> list[AnyTool]:
    return files.tools(root, writable=True)


# ------------------------------------------------------------ what works


def test_folders_are_listed_by_name_and_in_pages(tools: list[AnyTool], root: Path) -> None:
    os.symlink("a.txt", root / "link")
    listed = call(tools, "files.list")
    assert [(entry["name"], entry["kind"]) for entry in listed["entries"]] == [
        ("a.txt", "file"),
        ("docs", "folder"),
        ("link", "link"),
    ]
    assert listed["entries"][0]["size_bytes"] == 17
    page = call(tools, "files.list", offset=1, limit=1)
    assert ([entry["name"] for entry in page["entries"]], page["next_offset"], page["total"]) == (
        ["docs"],
        2,
        3,
    )


def test_files_are_read_in_parts_that_never_break_a_character(tools: list[AnyTool], root: Path) -> None:
    text = "\ufeffé漢🎉x" * 400
    (root / "u.txt").write_text(text, encoding="utf-8")
    for limit in (1, 3, 4, 5, 7, 100):
        got, offset = "", 0
        while offset is not None and len(got) < 60:
            part = call(tools, "files.read", path="u.txt", offset=offset, limit=limit)
            got += part["text"]
            offset = part["next_offset"]
        if limit >= 4:
            assert text.removeprefix("\ufeff").startswith(got)
    assert call(tools, "files.read", path="./docs/../a.txt")["text"] == "alpha\nBeta\ngamma\n"
    assert call(tools, "files.read", path="a.txt", offset=10**12) == {
        "text": "", "offset": 10**12, "next_offset": None, "size_bytes": 17,
    }  # fmt: skip


def test_a_search_names_file_and_line_and_what_it_passed_over(tools: list[AnyTool], root: Path) -> None:
    (root / "bin").write_bytes(b"beta\x00")
    found = call(tools, "files.search", text="BETA")
    assert [(match["path"], match["line"]) for match in found["matches"]] == [
        ("a.txt", 2),
        ("docs/b.md", 1),
        ("docs/deep/c.txt", 1),
    ]
    assert "1 files are too large or not text" in found["incomplete"]
    exact = call(tools, "files.search", text="beta", path="docs", names="*.md", ignore_case=False)
    assert [match["path"] for match in exact["matches"]] == ["docs/b.md"]
    assert exact["incomplete"] == ""


def test_links_that_stay_inside_are_followed(tools: list[AnyTool], root: Path) -> None:
    os.symlink("../a.txt", root / "docs" / "up")
    os.symlink("docs/deep", root / "short")
    os.symlink(root / "docs", root / "absolute")
    assert call(tools, "files.read", path="docs/up")["text"].startswith("alpha")
    assert call(tools, "files.read", path="short/../b.md")["text"] == "# beta\n"
    assert call(tools, "files.read", path="absolute/deep/c.txt")["text"] == "deep beta\n"
    assert call(tools, "files.list", path="absolute")["total"] == 3


def test_a_file_is_made_replaced_and_left_alone_when_nothing_changes(
    tools: list[AnyTool], root: Path
) -> None:
    assert call(tools, "files.write", path="docs/new.txt", text="one\n")["created"] is True
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        call(tools, "files.write", path="docs/new.txt", text="two\n")
    assert (
        call(tools, "files.write", path="docs/new.txt", text="one\n")["created"] is False
    )  # an attempt again
    os.chmod(root / "docs" / "new.txt", 0o640)
    call(tools, "files.write", path="docs/new.txt", text="two\n", overwrite=True)
    assert (root / "docs" / "new.txt").read_text() == "two\n"
    assert (root / "docs" / "new.txt").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(root / "docs")) == ["b.md", "deep", "new.txt"]


def test_people_see_what_would_change(tools: list[AnyTool]) -> None:
    write = tools[-1]
    assert write.preview is not None
    shown = write.preview({"path": "a.txt", "text": "alpha\nbeta\ngamma\n"}, NOBODY)
    assert shown == "replaces a.txt:\nfrom line 1 on:\n@@ -1,4 +1,4 @@\n alpha\n-Beta\n+beta\n gamma\n "
    assert write.preview({"path": "n.txt", "text": "x"}, NOBODY) == "makes n.txt, 1 bytes:\n+x"
    assert "more lines)" in write.preview({"path": "n.txt", "text": "x\n" * 5000}, NOBODY)


def test_a_change_far_down_in_a_long_file_is_shown_and_one_too_long_is_said(root: Path) -> None:
    write = files.tools(root, writable=True)[-1]
    assert write.preview is not None
    lines = [f"line {number}" for number in range(50_000)]
    (root / "long.txt").write_text("\n".join(lines))
    changed = [*lines[:40_000], "CHANGED", *lines[40_001:]]
    shown = write.preview({"path": "long.txt", "text": "\n".join(changed)}, NOBODY)
    assert shown.startswith("replaces long.txt:\nfrom line 39999 on:")
    assert "-line 40000\n+CHANGED" in shown
    shown = write.preview({"path": "long.txt", "text": "\n".join(reversed(lines))}, NOBODY)
    assert "lines 1 to 50000 give way to these 50000 lines (not compared):\n+line 49999" in shown
    assert shown.endswith("more lines)")
    assert write.preview({"path": "long.txt", "text": "\n".join(lines)}, NOBODY).endswith("(no line changes)")


def test_writing_is_only_offered_where_it_was_asked_for(root: Path) -> None:
    assert [each.name for each in files.tools(root, name="docs")] == ["docs.list", "docs.read", "docs.search"]
    assert [each.effects for each in files.tools(root, writable=True)] == ["read"] * 3 + ["idempotent"]


# ------------------------------------------------------------ what must not


OUTSIDE = [
    "../outside/secret.txt",
    "..",
    "docs/../../outside/secret.txt",
    "docs/deep/../../../outside/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "~/x",
    "./../outside/secret.txt",
    ".env",
    "docs/.hidden",
    "link_out",
    "link_abs",
    "dir_out/secret.txt",
    "dir_abs/secret.txt",
    "chain",
    "loop",
    "self/../../outside/secret.txt",
    "proc/self/root/etc/passwd",
    "sneaky/secret.txt",
    "to_hidden",
]


@pytest.fixture
def links(root: Path) -> None:
    os.symlink("../outside/secret.txt", root / "link_out")
    os.symlink(root.parent / "outside" / "secret.txt", root / "link_abs")
    os.symlink("../outside", root / "dir_out")
    os.symlink(root.parent / "outside", root / "dir_abs")
    os.symlink("docs/hop", root / "chain")
    os.symlink("../link_out", root / "docs" / "hop")
    os.symlink("loop", root / "loop")
    os.symlink(".", root / "self")
    os.symlink("/proc", root / "proc")
    os.symlink(f"{root}/../outside", root / "sneaky")
    os.symlink(".env", root / "to_hidden")


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_is_read_listed_searched_or_written(
    tools: list[AnyTool], root: Path, path: str
) -> None:
    attempts: list[dict[str, Any]] = [
        {"name": "files.read", "path": path},
        {"name": "files.list", "path": path},
        {"name": "files.search", "path": path, "text": "secret"},
        {"name": "files.write", "path": path, "text": "owned", "overwrite": True},
        {"name": "files.write", "path": f"{path}/new", "text": "owned", "overwrite": True},
    ]
    for attempt in attempts:
        with pytest.raises((PermissionError, OSError)):
            call(tools, attempt.pop("name"), **attempt)
    write = tools[-1].preview
    assert write is not None
    with pytest.raises(OSError):
        write({"path": path, "text": "x"}, NOBODY)
    assert (root.parent / "outside" / "secret.txt").read_text() == SECRET
    assert os.listdir(root.parent / "outside") == ["secret.txt"]
    assert (root / ".env").read_text() == "KEY=1"


@pytest.mark.usefixtures("links")
def test_a_search_from_the_top_follows_no_link_out(tools: list[AnyTool]) -> None:
    assert call(tools, "files.search", text="secret")["matches"] == []


@pytest.mark.parametrize(
    "path", ["a\x00b", "\x00", "x" * 1001, "a.txt/b", "nothing", "docs", "", "a.txt\x00.md"]
)
def test_odd_paths_give_errors_of_the_script(tools: list[AnyTool], path: str) -> None:
    with pytest.raises((OSError, ValueError, ArgumentsInvalid)):
        call(tools, "files.read", path=path)


def test_hidden_names_can_be_allowed(root: Path) -> None:
    assert call(files.tools(root, hidden=True), "files.read", path=".env")["text"] == "KEY=1"


def test_what_is_no_ordinary_file_is_never_opened(tools: list[AnyTool], root: Path) -> None:
    os.mkfifo(root / "pipe")
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(root)  # the path of a socket is short
    try:
        server.bind("sock")
    finally:
        os.chdir(here)
    for name in ("pipe", "sock"):
        with pytest.raises(PermissionError, match="no ordinary file"):
            call(tools, "files.read", path=name)
        with pytest.raises(PermissionError, match="no ordinary file"):
            call(tools, "files.write", path=name, text="x", overwrite=True)
    assert call(tools, "files.search", text="beta")["files_searched"] == 3
    assert {entry["kind"] for entry in call(tools, "files.list")["entries"]} == {"file", "folder", "other"}
    server.close()


def test_names_that_are_not_unicode_are_listed_and_searched_without_harm(
    tools: list[AnyTool], root: Path
) -> None:
    with open(os.path.join(os.fsencode(root), b"bad\xff\xfe.txt"), "w") as file:
        file.write("beta")
    assert "bad��.txt" in [entry["name"] for entry in call(tools, "files.list")["entries"]]
    assert "bad��.txt" in [match["path"] for match in call(tools, "files.search", text="beta")["matches"]]


def test_a_link_put_in_place_between_two_steps_leads_nowhere(tools: list[AnyTool], root: Path) -> None:
    """Swap a folder and a link to the outside as fast as possible while the folder is read through."""
    outside = root.parent / "outside"
    (root / "swap").mkdir()
    (root / "swap" / "secret.txt").write_text("harmless")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "swap", root / "kept")
            os.symlink(outside, root / "swap")
            os.unlink(root / "swap")
            os.rename(root / "kept", root / "swap")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[str] = set()
    reads = refusals = 0
    try:
        while reads + refusals < 600 or not reads or not refusals:
            try:
                seen.add(call(tools, "files.read", path="swap/secret.txt")["text"])
                reads += 1
                call(tools, "files.write", path="swap/made", text="x", overwrite=True)
            except OSError:
                refusals += 1
    finally:
        stop.set()
        swapping.join()
    assert seen == {"harmless"}
    assert os.listdir(outside) == ["secret.txt"]


def test_a_folder_moved_out_while_it_is_walked_does_not_take_dots_along(root: Path) -> None:
    confined = Confined(root)
    with confined.folder_of("docs/deep/x") as (folder, name):
        assert name == "x"
        os.rename(root / "docs" / "deep", root.parent / "outside" / "deep")
        assert os.path.basename(os.readlink(f"/proc/self/fd/{folder}")) == "deep"
    with pytest.raises(FileNotFoundError):
        confined.open_folder("docs/deep/../..")


def test_no_descriptor_is_left_open(tools: list[AnyTool], root: Path) -> None:
    os.symlink("../outside", root / "dir_out")
    os.symlink("docs", root / "in")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        for path in ("in/../in/b.md", "dir_out/x", "missing/x", "a.txt/x", "docs", "../x", "in/.."):
            try:
                call(tools, "files.read", path=path)
            except OSError:
                pass
    call(tools, "files.search", text="beta")
    assert len(os.listdir("/proc/self/fd")) == before


def test_sizes_are_bounded(tools: list[AnyTool], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="more than may be written"):
        call(tools, "files.write", path="big", text="x" * ((1 << 20) + 1))
    with pytest.raises(ArgumentsInvalid):
        call(tools, "files.read", path="a.txt", limit=1 << 30)
    (root / "bin").write_bytes(b"\x00\x01")
    with pytest.raises(ValueError, match="it holds zero bytes"):
        call(tools, "files.read", path="bin")
    monkeypatch.setattr(file_search, "MAX_MATCHES", 2)
    found = call(tools, "files.search", text="a")
    assert (len(found["matches"]), found["incomplete"]) == (2, "stopped at 2 matches")
    monkeypatch.setattr(file_search, "MAX_SEARCHED_FILES", 1)
    assert "stopped after 1 files" in call(tools, "files.search", text="zzz")["incomplete"]


def test_a_folder_that_is_not_there_is_an_error_of_the_operator(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.tools(tmp_path / "none")
