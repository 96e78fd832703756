"""logging: a tree of loggers as CPython's, with everything on the script's output and nothing read in C."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.unit.guest.harness import run

IMPORT = "import logging, sys\n"


def printed(script: str) -> str:
    """Run a script that imports logging and return what it printed."""
    outcome = run(IMPORT + script)
    assert outcome.errors == ()
    return outcome.output


SAME = {
    "a root that nobody set up": "logging.warning('a %s', 1)\nlogging.info('no')\nlogging.error('b')\n",
    "a logger without handlers": (
        "log = logging.getLogger('x')\nlog.warning('bare')\nlog.info('no')\n"
        "log.error('bad %s', 1)\nlog.setLevel(60)\nlog.exception('e')\n"
    ),
    "a format and a level": (
        "text = '%(levelname)-8s %(name)s:%(lineno)d %(funcName)s %(message)s'\n"
        "logging.basicConfig(level='DEBUG', format=text)\n"
        "log = logging.getLogger('x')\n"
        "def work():\n"
        "    log.debug('b %(n)d', {'n': 2})\n"
        "work()\nlog.setLevel(logging.ERROR)\nlog.warning('no')\nlog.log(55, 'c')\nlog.critical('d')\n"
        "logging.disable(logging.CRITICAL)\nlog.critical('no')\n"
    ),
    "only the first basicConfig counts": (
        "logging.basicConfig(format='1 %(message)s')\nlogging.basicConfig(format='2 %(message)s', level=10)\n"
        "logging.warning('x')\nlogging.debug('no')\n"
        "logging.basicConfig(format='3 %(message)s', force=True)\nlogging.warning('y')\n"
    ),
    "styles": (
        "for style, text in (('{', '{levelname:>9}|{message}'), ('$', '$levelname $message'), ('%', None)):\n"
        "    logging.basicConfig(format=text, style=style, force=True)\n"
        "    logging.warning('m')\n"
    ),
    "handlers, propagation and levels": (
        "out = logging.StreamHandler(sys.stdout)\n"
        "out.setFormatter(logging.Formatter('%(name)s %(message)s %(who)s', defaults={'who': 'nobody'}))\n"
        "out.setLevel('INFO')\n"
        "top, low = logging.getLogger('a'), logging.getLogger('a.b.c')\n"
        "top.addHandler(out)\ntop.addHandler(out)\ntop.setLevel(10)\n"
        "low.info('i', extra={'who': 'me'})\nlow.debug('no')\n"
        "low.propagate = False\nlow.error('last resort')\n"
        "low.addHandler(logging.NullHandler())\nlow.error('no')\n"
        "low.propagate = True\nlow.removeHandler(low.handlers[0])\n"
        "top.addFilter(lambda record: 'secret' not in record.getMessage())\n"
        "top.info('secret')\nlow.info('secret of a child')\n"
        "print(low.parent.name, low.hasHandlers(), low.getEffectiveLevel(), low.isEnabledFor(10))\n"
        "print(top.getChild('x').name, logging.getLogger().getChild('y').name, logging.getLevelName(20),\n"
        "      logging.getLevelName('ERROR'), repr(low), repr(logging.root), repr(top.getChild('z')))\n"
    ),
    "a handler of the script": (
        "class Rows(logging.Handler):\n"
        "    def __init__(self):\n"
        "        super().__init__(level=logging.INFO)\n"
        "        self.rows = []\n"
        "    def emit(self, record):\n"
        "        text = self.format(record)\n"
        "        self.rows.append((record.levelname, record.name, record.getMessage(), text))\n"
        "class Loud(logging.Formatter):\n"
        "    def format(self, record):\n"
        "        return super().format(record).upper()\n"
        "rows = Rows()\nrows.setFormatter(Loud('%(message)s!'))\n"
        "rows.addFilter(lambda record: record.levelno != 30)\n"
        "log = logging.getLogger('r')\nlog.setLevel('DEBUG')\nlog.addHandler(rows)\n"
        "log.debug('no')\nlog.info('i')\nlog.warning('no')\nlog.error('e %s', [1])\n"
        "print(rows.rows, rows.level, rows.flush(), rows.close())\n"
    ),
    "dates": (
        "logging.basicConfig(format='%(asctime)s %(message)s', datefmt='at %%', force=True)\n"
        "logging.warning('m')\n"
    ),
    "levels that are not set, loggers that are asked for twice, handlers with a format": (
        "own = logging.StreamHandler(sys.stdout)\nown.setFormatter(logging.Formatter('own %(message)s'))\n"
        "logging.basicConfig(handlers=[own, logging.StreamHandler(sys.stdout)], format='base %(message)s')\n"
        "logging.root.setLevel(0)\nlog = logging.getLogger('twice')\n"
        "print(log is logging.getLogger('twice'), log.getEffectiveLevel())\nlog.debug('d')\n"
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    log.error('e')\n"
    ),
    "silenced loggers": "log = logging.getLogger('q')\nlog.disabled = True\nlog.error('no')\n",
}


@pytest.mark.parametrize("name", SAME)
def test_records_are_written_as_cpython_writes_them(name: str) -> None:
    script = IMPORT + SAME[name]
    plain = subprocess.run(
        [sys.executable, "-S", "-u", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    assert printed(SAME[name]) == plain.stdout


def test_the_time_is_the_runs() -> None:
    assert printed("logging.basicConfig(format='%(asctime)s')\nlogging.error('')\n") == (
        "2025-06-15 15:06:40,000\n"
    )


def test_a_message_that_cannot_be_made_is_reported_and_fails_nobody() -> None:
    assert printed("logging.warning('%s %s', 1)\nprint('on')\n") == (
        "--- Logging error ---\nTypeError: not enough arguments for format string\non\n"
    )


def test_exceptions_are_logged_with_what_they_came_from() -> None:
    assert (
        printed(
            "try:\n    try:\n        1 / 0\n    except ZeroDivisionError as error:\n"
            "        raise KeyError('k') from error\n"
            "except KeyError as error:\n"
            "    logging.error('by object', exc_info=error)\n"
            "    logging.exception('now')\n"
        ).count("The above exception was the direct cause of the following exception:")
        == 2
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("logging.basicConfig(filename='x')", "filename is not available: records go to the script's output"),
        ("logging.basicConfig(style='!')", "Style must be one of: %,{,$"),
        ("logging.Formatter(style='!')", "Style must be one of: %,{,$"),
        ("logging.getLogger('x').setLevel('LOUD')", "Unknown level: 'LOUD'; levels are NOTSET, DEBUG"),
        ("logging.getLogger('x').setLevel(None)", "Level not an integer or a valid string: None"),
        ("logging.getLogger(7)", "A logger name must be a string"),
        ("logging.Logger('x', 1)", "write logging.getLogger(name)"),
        ("logging.warning('m', extra={'name': 1})", "Attempt to overwrite 'name' in LogRecord"),
        ("logging.Handler().emit(1)", "emit must be implemented by Handler subclasses"),
        ("logging.Handler().format('m')", "expected a LogRecord, not 'str'"),
    ],
)
def test_what_logging_refuses(line: str, message: str) -> None:
    outcome = run(f"{IMPORT}{line}\n")
    assert outcome.status == "failed"
    assert message in outcome.error.message


def test_records_show_data_and_nothing_else() -> None:
    assert (
        printed(
            "class Show(logging.Handler):\n"
            "    def emit(self, record):\n"
            "        print(repr(record), record.args, record.module, record.exc_info)\n"
            "        for name in ('missing', '_target', '_values', 'target_of'):\n"
            "            print(hasattr(record, name))\n"
            "logging.root.addHandler(Show())\n"
            "logging.warning('%d', 5)\n"
        )
        == "<LogRecord: root, 30, script, 8, '5'> (5,) script None\n" + "False\n" * 4
    )


def test_a_text_as_formatter_reads_no_attribute_of_a_record() -> None:
    outcome = run(
        f"{IMPORT}handler = logging.StreamHandler()\nhandler.setFormatter('{{0._target.output}}')\n"
        "logging.root.addHandler(handler)\nlogging.warning('m')\n"
    )
    assert outcome.status == "failed"
    assert "_target" in outcome.error.message
    assert outcome.output == ""


def test_an_adapter_merges_what_a_record_adds() -> None:
    outcome = run(
        "import logging\nlogging.basicConfig(format='%(a)s %(b)s %(message)s')\n"
        "log = logging.LoggerAdapter(logging.getLogger('x'), {'a': 1}, merge_extra=True)\n"
        "log.error('m', extra={'b': 2})\n"
    )
    assert (outcome.errors, outcome.output) == ((), "1 2 m\n")


def test_an_adapter_needs_a_logger() -> None:
    assert (
        "LoggerAdapter(logging.getLogger(name)"
        in run("import logging\nlogging.LoggerAdapter(5)\n").error.message
    )
    chain = (
        "import logging\na = logging.getLogger('x')\n"
        "for _ in range(25):\n    a = logging.LoggerAdapter(a, {})\n"
    )
    assert "LoggerAdapter(logging.getLogger(name)" in run(chain).error.message
