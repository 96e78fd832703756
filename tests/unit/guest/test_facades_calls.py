"""functools, operator, itertools and contextlib show what the script put in, and read through the guard."""

from __future__ import annotations

import collections
import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.unit.guest.facade_stage import Stage
from tests.unit.guest.harness import run


def test_partial_calls_with_what_it_was_given() -> None:
    partial = Stage()["functools"].partial
    assert partial(int, base=2)("101") == 5
    assert partial(max, 3)(1) == 3
    assert partial(int, base=2).keywords == {"base": 2}
    assert repr(partial(int)) == "functools.partial(int, ...)"
    with pytest.raises(TypeError, match="callable"):
        partial(3)


def test_wraps_copies_names_and_text_only() -> None:
    functools = Stage()["functools"]

    def original() -> None:
        """Say something."""

    def plain() -> None: ...

    wrapper = functools.wraps(original)(plain)

    assert (wrapper.__name__, wrapper.__doc__) == ("original", "Say something.")
    assert not hasattr(wrapper, "__wrapped__")
    assert functools.update_wrapper(wrapper, dict).__name__ == "original"
    assert functools.wraps(original)(len) is len


def test_single_dispatch_goes_by_class() -> None:
    singledispatch = Stage()["functools"].singledispatch

    def answer(text: str) -> Callable[[object], str]:
        return lambda value: text

    show = singledispatch(answer("object"))
    show.register(int)(answer("int"))
    show.register(Mapping, answer("mapping"))
    assert [show(True), show({}), show("a")] == ["int", "mapping", "object"]
    assert show.dispatch(bool)(1) == "int"
    with pytest.raises(TypeError, match="or annotate the first argument"):
        show.register(answer("a"))


def test_total_ordering_changes_only_the_scripts_classes() -> None:
    stage = Stage()
    total_ordering = stage["functools"].total_ordering

    class Size:
        def __init__(self, value: int) -> None:
            self.value = value

        def __lt__(self, other: Size) -> bool:
            return self.value < other.value

    with pytest.raises(TypeError, match="that this script defines"):
        total_ordering(collections.Counter)
    made: Any = total_ordering(stage.owned(Size))
    assert made(2) > made(1)


def test_caches_remember() -> None:
    functools = Stage()["functools"]
    calls: list[int] = []

    def double(n: int) -> int:
        calls.append(n)
        return 2 * n

    for decorate in (functools.cache, functools.lru_cache, functools.lru_cache(maxsize=2)):
        cached = decorate(double)
        assert (cached(1), cached(1)) == (2, 2)
    assert calls == [1, 1, 1]


def test_attribute_getters_read_through_the_guards() -> None:
    stage = Stage()
    operator = stage["operator"]
    value = collections.deque([1], maxlen=5)
    assert operator.attrgetter("maxlen")(value) == 5
    assert operator.attrgetter("maxlen.real", "maxlen")(value) == (5, 5)
    assert operator.methodcaller("count", 1)(value) == 1
    assert stage.guards.read_names == ["maxlen", "maxlen", "real", "maxlen", "count"]


@pytest.mark.parametrize("name", ["attrgetter", "methodcaller"])
def test_attribute_names_are_exactly_text(name: str) -> None:
    class Liar(str):
        pass

    with pytest.raises(TypeError, match="must be a string"):
        Stage()["operator"].__getattribute__(name)(Liar("a"))


def test_batched_is_there_on_every_python() -> None:
    batched = Stage()["itertools"].batched
    assert list(batched("abcde", 2)) == [("a", "b"), ("c", "d"), ("e",)]
    with pytest.raises(ValueError):
        list(batched("abc", 0))


def test_closing_closes_through_the_guards() -> None:
    stage = Stage()
    with stage["contextlib"].closing(io.StringIO()) as text:
        assert not text.closed
    assert text.closed
    assert stage.guards.read_names == ["close"]


def test_output_can_be_redirected_to_a_text_in_memory() -> None:
    stage = Stage()
    target = io.StringIO()
    with stage["contextlib"].redirect_stdout(target):
        stage["sys"].stdout.write("hidden")
    stage["sys"].stdout.write("shown")
    assert target.getvalue() == "hidden"
    assert stage.printed() == "shown"


def test_what_is_meant_for_stderr_is_redirected_apart() -> None:
    outcome = run(
        "import contextlib, io, logging, sys, traceback\n"
        "with contextlib.redirect_stderr(io.StringIO()) as errors:\n"
        "    print('shown')\n"
        "    sys.stderr.write('a')\n"
        "    logging.error('b')\n"
        "with contextlib.redirect_stdout(io.StringIO()) as text:\n"
        "    print('kept')\n"
        "    sys.stderr.write('c')\n"
        "chosen = io.StringIO()\n"
        "try:\n"
        "    1 / 0\n"
        "except ZeroDivisionError as error:\n"
        "    traceback.print_exc(file=chosen)\n"
        "    traceback.print_exception(error, file=chosen)\n"
        "print([errors.getvalue(), text.getvalue(), chosen.getvalue().count('division by zero')])\n"
    )
    assert outcome.output == "shown\nc['aERROR:root:b\\n', 'kept\\n', 2]\n"


def test_scripts_use_context_managers_of_every_kind() -> None:
    outcome = run(
        "import contextlib, io\n"
        "@contextlib.contextmanager\n"
        "def numbered(n):\n"
        "    print('in', n)\n"
        "    yield n\n"
        "    print('out', n)\n"
        "class Closable:\n"
        "    async def aclose(self):\n"
        "        print('closed')\n"
        "with contextlib.ExitStack() as stack, contextlib.suppress(ValueError):\n"
        "    print(stack.enter_context(numbered(1)) + stack.enter_context(numbered(2)))\n"
        "    raise ValueError('gone')\n"
        "async with contextlib.aclosing(Closable()):\n"
        "    pass\n"
        "with contextlib.redirect_stdout(io.StringIO()) as text:\n"
        "    print('hidden')\n"
        "return text.getvalue()\n"
    )
    assert outcome.errors == ()
    assert outcome.output == "in 1\nin 2\n3\nout 2\nout 1\nclosed\n"
    assert outcome.value == "hidden\n"


def test_a_stream_redirected_to_itself_or_to_the_other_does_not_go_round() -> None:
    outcome = run(
        "import contextlib, io, sys\n"
        "with contextlib.redirect_stdout(sys.stdout) as same:\n"
        "    print('a', same is sys.stdout)\n"
        "text = io.StringIO()\n"
        "with contextlib.redirect_stdout(text), contextlib.redirect_stderr(sys.stdout):\n"
        "    print('b', file=sys.stderr)\n"
        "    with contextlib.redirect_stdout(sys.stderr):\n"
        "        print('c')\n"
        "return text.getvalue()\n"
    )
    assert outcome.output == "a True\n"
    assert outcome.value == "b\nc\n"
