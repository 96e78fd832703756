"""Each limit, provoked in a guest process: it ends the run with a message that names the line."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.unit.guest.guest_process import Guest, run_process


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


def test_a_script_runs_in_a_process_and_only_frames_reach_the_host() -> None:
    ended = run_process("print('hi', double(2))\n", {"double": double})
    assert ended.finish is not None
    assert (ended.finish.status, ended.output, ended.exit_code) == ("ok", "hi 4\n", 0)
    assert ended.hello.image == "process"
    assert ended.finish.usage.peak_memory_bytes > 1 << 20


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("x = 1\nwhile True:\n    pass\n", 3),
        ("while True:\n    try:\n        while True:\n            pass\n    except:\n        pass\n", 4),
        ("while True:\n    try:\n        x = 1\n    finally:\n        continue\n", None),
        (
            "class C:\n    def __exit__(self, *e):\n        return True\n"
            "    def __enter__(self):\n        pass\n"
            "while True:\n    with C():\n        while True:\n            pass\n",
            9,
        ),
        ("import asyncio\nasync def f():\n    while True:\n        await asyncio.sleep(0)\nawait f()\n", 4),
        ("def f(n):\n    return 1 if n < 2 else f(n - 1) + f(n - 2)\nf(60)\n", None),
    ],
)
def test_the_wall_limit_cannot_be_swallowed(script: str, line: int | None) -> None:
    ended = run_process(script, wall_s=0.3)
    assert ended.error.kind == "wall_limit"
    assert "after 0.3 s" in ended.error.message
    assert ended.exit_code == 0
    if line is not None:
        assert ended.error.line in {line, line - 1}
    assert ended.error.line is not None


def test_the_message_says_what_kind_of_loop_it_was() -> None:
    ended = run_process("def f():\n    while True:\n        pass\nf()\n", wall_s=0.2)
    assert "in a while loop" in ended.error.message
    assert "line" in ended.error.message


@pytest.mark.parametrize(
    ("line", "words", "suggestion"),
    [
        ("re.match(r'(a+)+$', 'a' * 40 + 'b')", "in a regular expression", "repeat inside a repeat"),
        ("re.compile(r'(a|a)*$').findall('a' * 40 + 'b')", "in a regular expression", "use str methods"),
        ("x = 7 ** (10 ** 9)", "in a power", "pow(base, exponent, modulus)"),
    ],
)
def test_a_limit_names_what_took_the_time(line: str, words: str, suggestion: str) -> None:
    ended = run_process(f"import re\n\n{line}\n", wall_s=0.2)
    if ended.finish is None:
        # Arithmetic looks at no signal before it is done: then the host reads the line from stderr.
        assert 'File "<script>", line 3' in ended.stderr
        return
    assert (ended.error.kind, ended.error.line) == ("wall_limit", 3)
    assert ended.error.message == f"stopped at line 3 after 0.2 s {words}"
    assert suggestion in (ended.error.suggestion or "")


@pytest.mark.parametrize("line", ["y = 'a' * 10 ** 12", "y = [0] * 10 ** 11", "y = 1 << (1 << 60)"])
def test_what_is_multiplied_beyond_memory_is_refused_at_its_line(line: str) -> None:
    ended = run_process(f"x = 1\n{line}\n", memory_bytes=128 << 20)
    assert (ended.error.kind, ended.error.line) == ("memory_limit", 2)
    assert "the script may use 128 MiB" in ended.error.message
    assert "Hold less at once" in (ended.error.suggestion or "")


def test_a_limit_in_a_pools_function_names_its_line() -> None:
    ended = run_process(
        "from concurrent.futures import ThreadPoolExecutor\ndef f():\n    while True:\n        pass\n"
        "with ThreadPoolExecutor() as pool:\n    pool.submit(f).result()\n",
        wall_s=0.2,
    )
    assert ended.error.line in {3, 4}


def test_a_loop_in_c_is_ended_with_its_line_on_stderr() -> None:
    ended = run_process("import itertools\nx = 1\nsum(itertools.repeat(1))\n", wall_s=0.2)
    assert ended.finish is None
    assert ended.exit_code == 1
    assert 'File "<script>", line 3' in ended.stderr


def test_time_in_which_the_host_works_does_not_count() -> None:
    ended = run_process("slow()\nslow()\nprint('through')\n", {"slow": lambda: time.sleep(0.4)}, wall_s=0.3)
    assert ended.output == "through\n"
    assert ended.exit_code == 0


def test_the_limit_still_holds_after_a_long_wait() -> None:
    ended = run_process("slow()\nwhile True:\n    pass\n", {"slow": lambda: time.sleep(0.4)}, wall_s=0.3)
    assert ended.error.kind == "wall_limit"


def test_the_cpu_limit() -> None:
    ended = run_process("while True:\n    pass\n", wall_s=30, cpu_s=0.2)
    assert (ended.error.kind, ended.error.line) in {("cpu_limit", 1), ("cpu_limit", 2)}
    assert "0.2 s of CPU time" in ended.error.message


@pytest.mark.parametrize(
    "script",
    [
        "x = []\nwhile True:\n    x.append('a' * 1_000_000)\n",
        "x = 'a' * 10 ** 10\n",
        "x = [0] * 10 ** 9\n",
        "x = {}\nfor i in range(10 ** 9):\n    x[i] = str(i)\n",
    ],
)
def test_the_memory_limit(script: str) -> None:
    ended = run_process(script, memory_bytes=64 << 20)
    assert ended.error.kind == "memory_limit"
    assert "64 MiB" in ended.error.message
    assert ended.error.line is not None


def test_memory_that_ran_out_can_be_handled() -> None:
    ended = run_process(
        "try:\n    x = 'a' * 10 ** 10\nexcept MemoryError:\n    print('less')\n", memory_bytes=64 << 20
    )
    assert ended.output == "less\n"


@pytest.mark.parametrize(
    "script",
    [
        "def f(n):\n    return f(n + 1)\nf(0)\n",
        "class A:\n    def __repr__(self):\n        return repr([self])\nrepr(A())\n",
        "x = []\nfor i in range(100_000):\n    x = [x]\nrepr(x)\n",
        "import re\ndef f(m):\n    return re.sub('a', f, 'a')\nf(0)\n",
        "def f(n):\n    return sorted([n], key=f)\nf(0)\n",
        "import json\njson.loads('[' * 100_000)\n",
        "import copy\nx = []\nfor i in range(100_000):\n    x = [x]\ncopy.deepcopy(x)\n",
    ],
)
@pytest.mark.parametrize("where", ["main", "pool"])
def test_recursion_ends_the_script_not_the_process(script: str, where: str) -> None:
    if where == "pool":
        body = "".join(f"    {text}\n" for text in script.splitlines())
        script = (
            f"from concurrent.futures import ThreadPoolExecutor\ndef work():\n{body}"
            "with ThreadPoolExecutor() as pool:\n    pool.submit(work).result()\n"
        )
    ended = run_process(script, recursion=1_000_000, wall_s=60.0, cpu_s=60.0)
    assert ended.error.kind == "recursion_limit"
    assert ended.exit_code == 0


def test_a_limit_at_the_bottom_of_a_recursion_still_ends_the_run() -> None:
    ended = run_process(
        "def f():\n    try:\n        return f()\n    except RecursionError:\n"
        "        while True:\n            pass\nf()\n",
        wall_s=0.3,
        recursion=300,
    )
    if ended.finish is None:
        assert 'File "<script>", line' in ended.stderr
    else:
        assert ended.error.kind == "wall_limit"


def test_the_output_limit_holds_in_a_process() -> None:
    ended = run_process("while True:\n    print('x' * 100)\n", output_bytes=10_000)
    assert ended.error.kind == "output_limit"
    assert len(ended.output) == 10_000


def test_a_guest_whose_host_has_gone_leaves_quietly() -> None:
    guest = Guest()
    assert guest.receive() is not None
    exit_code, stderr = guest.close()
    assert (exit_code, stderr) == (0, "")


def test_a_guest_says_hello_before_it_has_what_only_mistakes_and_few_scripts_need() -> None:
    program = (
        "import sys\nbefore = set(sys.modules)\nimport bascule.guest.main\n"
        "print({'dataclasses', 'difflib', 'asyncio'} & (set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    assert done.stdout == "set()\n"


def test_a_warm_guest_has_never_imported_asyncio() -> None:
    program = (
        "import sys\nfrom bascule.guest.warmup import warm_up\nwarm_up()\n"
        "print({'asyncio', 'concurrent.futures', 'socket', 'subprocess'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    assert done.stdout == "set()\n"
