"""The examples of docs/tools.md: every block runs, in order, in an empty folder; so do the commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bascule.cli.main import app
from bascule.tools.lint import lint_tools
from bascule.tools.loading import load_tools

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    Path("shop_tools.py").write_text(BLOCKS[0], encoding="utf-8")
    yield
    sys.path[:] = path


def test_every_block_runs() -> None:
    assert len(BLOCKS) == 6
    scope: dict[str, object] = {"__name__": "page"}
    for block in BLOCKS:
        exec(compile(block, "docs/tools.md", "exec", dont_inherit=True), scope)


def test_the_tools_of_the_page_do_what_the_page_says() -> None:
    from bascule.tools import ToolContext

    get, refund = load_tools("shop_tools.py")
    assert get.dump_result(get.call(get.validate({"order_id": "O-1"}).values)) == (
        b'{"order_id":"O-1","customer":"Ada","total":"12.50","status":"paid"}'
    )
    values = refund.validate({"order_id": "O-1", "amount": 99}).values
    context = ToolContext(idempotency_key="ABCDEF", secrets={"SHOP_TOKEN": "s3cret-token"})
    assert refund.check is not None
    assert refund.preview is not None
    with pytest.raises(ValueError, match="more than was paid"):
        refund.check(values, context)
    assert refund.preview(values, context) == "pays 99 back to Ada"
    assert refund.call(values, context) == "refunded with key ABCD and a token of 12 characters"


def test_the_commands_of_the_page_run() -> None:
    assert lint_tools(load_tools("shop_tools.py")) == []
    runner = CliRunner()
    for line in re.findall(r"`bascule (tools [^`]*)`", PAGE):
        arguments = [part.strip('"') for part in re.findall(r'"[^"]*"|\S+', line)]
        assert runner.invoke(app, arguments).exit_code == 0, line
