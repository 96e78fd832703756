"""Journals that earlier versions left can be read and replayed by this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bascule.bridge.errors import ResumeError
from bascule.bridge.journal import JOURNAL_VERSION, EventKind
from bascule.bridge.recording import read_recording
from bascule.bridge.testing import Bascule

FOLDER = Path(__file__).parents[1] / "fixtures" / "journals"


@pytest.mark.parametrize("version", range(1, JOURNAL_VERSION + 1))
def test_a_journal_of_an_earlier_version_replays(version: int) -> None:
    path = FOLDER / f"v{version}.jsonl"
    read = read_recording(path)
    kinds = {entry.kind for entry in read.entries}
    assert kinds == set(EventKind)
    result = Bascule().replay(path)
    assert (result.status, result.value) == ("ok", [[2, 20, 6], 533, True])
    assert result.output == "begin True\nno 4\nlate\n"


def test_a_journal_of_a_later_version_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / f"v{JOURNAL_VERSION}.jsonl").read_text()
    later = tmp_path / "later.jsonl"
    later.write_text(text.replace(f'"version":{JOURNAL_VERSION}', f'"version":{JOURNAL_VERSION + 1}'))
    with pytest.raises(ResumeError, match="upgrade") as refused:
        read_recording(later)
    assert refused.value.code == "journal_newer"
