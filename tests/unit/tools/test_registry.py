"""Finding tools by name, exactly, and guessing what was meant."""

from __future__ import annotations

import pytest

from bascule.tools import AnyTool, Registry, Tool, ToolDefinitionError, tool
from bascule.wire import ToolStub


def make(name: str, summary: str = "Do it.") -> AnyTool:
    def do() -> None: ...

    do.__doc__ = summary
    return tool(name=name)(do)


def plain_function(count: int) -> int:
    """Count."""
    return count


NAMES = ("get_expenses", "get_budget", "crm.find_contact", "crm.find_company", "mail.send")


def test_tools_are_found_by_exact_name_only() -> None:
    registry = Registry(map(make, NAMES))
    assert registry.names() == NAMES
    assert [each.name for each in registry] == list(NAMES)
    assert len(registry) == 5
    assert "mail.send" in registry
    assert 3 not in registry
    found = registry.get("mail.send")
    assert found is not None
    assert found.name == "mail.send"
    for name in ("Mail.send", "mail", "send", " mail.send", "__class__", ""):
        assert registry.get(name) is None
    assert repr(registry) == "<Registry of 5 tools>"


def test_the_nearest_names_are_guessed_within_bounds() -> None:
    registry = Registry(map(make, NAMES))
    assert registry.nearest("get_expense")[0] == "get_expenses"
    assert registry.nearest("GetBudget") == ["get_budget"]
    assert registry.nearest("find_contact")[0] == "crm.find_contact"
    assert registry.nearest("zzzz") == []
    assert len(registry.nearest("crm.find_comp")) <= 3
    assert registry.nearest("mail.send" * 100_000) == []


def test_functions_become_tools_with_default_options() -> None:
    registry = Registry([plain_function])
    found = registry.get("plain_function")
    assert isinstance(found, Tool)
    assert found.effects == "once"


def test_the_same_tool_twice_is_one_tool() -> None:
    made = make("a")
    assert len(Registry([made, made])) == 1


def test_two_tools_of_one_name_are_refused_with_both_places() -> None:
    with pytest.raises(
        ToolDefinitionError, match=r"two tools are called a.*test_registry.py:\d+.*"
    ) as caught:
        Registry([make("a"), make("a")])
    assert caught.value.code == "tool_duplicate"


@pytest.mark.parametrize("names", [("crm", "crm.find"), ("crm.find", "crm"), ("a.b", "a.b.c")])
def test_a_tool_cannot_be_the_namespace_of_another(names: tuple[str, str]) -> None:
    with pytest.raises(ToolDefinitionError, match="the namespace of"):
        Registry(map(make, names))


def test_names_that_merely_begin_alike_are_free() -> None:
    assert len(Registry(map(make, ("crm", "crm2.find", "crm_find")))) == 3


def test_the_digest_is_that_of_the_definitions_in_any_order() -> None:
    first = Registry(map(make, NAMES))
    assert first.digest == Registry(map(make, reversed(NAMES))).digest
    assert first.digest != Registry(map(make, NAMES[1:])).digest
    assert first.digest != Registry([make(NAMES[0], "Do otherwise."), *map(make, NAMES[1:])]).digest


def test_stubs_for_the_guest_and_the_prompt_follow_the_order() -> None:
    registry = Registry(map(make, ("b", "a")))
    assert registry.stubs() == (
        ToolStub(name="b", parameters=make("b").parameters, returns={"type": "null"}, summary="Do it."),
        ToolStub(name="a", parameters=make("a").parameters, returns={"type": "null"}, summary="Do it."),
    )
    assert registry.render_stubs(detail="names") == "b  # Do it.\na  # Do it.\n"
    assert Registry().render_stubs() == ""
