"""docs/language.md says what the rules say. BASCULE_WRITE_DOCS=1 writes it."""

from __future__ import annotations

import os
from pathlib import Path

from bascule.guest.rules.modules import MODULES, REFUSED_MODULES
from bascule.guest.rules.names import NAMES
from tests.docs.language import page

PAGE = Path(__file__).parents[2] / "docs/language.md"


def test_the_page_of_the_language_is_up_to_date() -> None:
    if os.environ.get("BASCULE_WRITE_DOCS") == "1":
        PAGE.write_text(page(), encoding="utf-8")
    hint = "run BASCULE_WRITE_DOCS=1 pytest tests/docs/test_language.py"
    assert PAGE.read_text(encoding="utf-8") == page(), hint


def test_no_module_and_no_name_is_left_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in (*MODULES, *REFUSED_MODULES, *NAMES) if f"`{name}`" not in text] == []
