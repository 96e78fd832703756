"""json, csv, logging, pprint, traceback and sys: text without paths, addresses or live objects."""

from __future__ import annotations

import decimal
import io

import pytest

from tests.unit.guest.facade_stage import Stage
from tests.unit.guest.harness import run


def test_json_reads_and_writes_with_the_usual_options() -> None:
    json = Stage()["json"]
    assert (
        json.dumps({"b": 1, "a": "é"}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        == '{"a":"é","b":1}'
    )
    assert json.dumps({"d": decimal.Decimal(1)}, default=str, indent=1) == '{\n "d": "1"\n}'
    assert json.loads('{"a": 1.5}', parse_float=decimal.Decimal) == {"a": decimal.Decimal("1.5")}
    assert json.loads(b"[1]") == [1]
    target = io.StringIO()
    json.dump([1], target)
    target.seek(0)
    assert json.load(target) == [1]


def test_what_is_parsed_already_comes_back_with_one_note() -> None:
    stage = Stage()
    value = {"a": 1}
    assert stage["json"].loads(value) is value
    assert stage["json"].loads([1]) == [1]
    (note,) = stage.environment.notes
    assert note.code == "json_already_parsed"
    with pytest.raises(TypeError):
        stage["json"].loads(object())


def test_json_takes_no_foreign_encoder_or_decoder() -> None:
    stage = Stage()
    json = stage["json"]
    with pytest.raises(TypeError, match=r"must extend json\.JSONEncoder"):
        json.dumps(1, cls=int)
    with pytest.raises(TypeError, match="has no option 'cls'"):
        json.loads("1", cls=int)
    with pytest.raises(TypeError, match="has no option 'x'"):
        json.dumps(1, x=2)
    with pytest.raises(TypeError, match="needs a JSONEncoder"):
        json.JSONEncoder.__init__(stage)


def test_scripts_extend_the_encoder() -> None:
    outcome = run(
        "import json\n"
        "from datetime import date\n"
        "class Encoder(json.JSONEncoder):\n"
        "    def default(self, o):\n"
        "        if isinstance(o, date):\n"
        "            return o.isoformat()\n"
        "        return json.JSONEncoder.default(self, o)\n"
        "print(json.dumps({'d': date(2026, 1, 2)}, cls=Encoder, indent=None))\n"
        "try:\n"
        "    json.dumps({1, 2}, cls=Encoder)\n"
        "except TypeError as error:\n"
        "    print(error)\n"
        "try:\n"
        "    json.loads('{')\n"
        "except json.JSONDecodeError as error:\n"
        "    print(error.pos, error.msg)\n"
    )
    assert outcome.output == (
        '{"d": "2026-01-02"}\nObject of type set is not JSON serializable\n'
        "1 Expecting property name enclosed in double quotes\n"
    )


def test_csv_works_on_text_in_memory() -> None:
    outcome = run(
        "import csv, io\n"
        "out = io.StringIO()\n"
        "writer = csv.DictWriter(out, fieldnames=['a', 'b'], quoting=csv.QUOTE_ALL)\n"
        "writer.writeheader()\n"
        "writer.writerow({'a': 1, 'b': 'x'})\n"
        "reader = csv.DictReader(io.StringIO(out.getvalue()))\n"
        "return [list(reader), reader.fieldnames, list(csv.reader(['1;2'], delimiter=';'))]\n"
    )
    assert outcome.value == [[{"a": "1", "b": "x"}], ["a", "b"], [["1", "2"]]]


def test_urls_are_taken_apart_and_built() -> None:
    outcome = run(
        "import urllib.parse\n"
        "from urllib.parse import urlencode, quote\n"
        "parts = urllib.parse.urlparse('https://a.example:8/b?c=1#d')\n"
        "query = urllib.parse.parse_qs(parts.query)\n"
        "return [parts.hostname, parts.port, query, urlencode({'a': 'b c'}), quote('ä')]\n"
    )
    assert outcome.value == ["a.example", 8, {"c": ["1"]}, "a=b+c", "%C3%A4"]


def test_an_exception_is_logged_with_the_lines_of_the_script() -> None:
    outcome = run(
        "import logging, traceback\n"
        "def fail():\n"
        "    return 1 / 0\n"
        "try:\n"
        "    fail()\n"
        "except ZeroDivisionError as error:\n"
        "    logging.exception('oh')\n"
        "    traceback.print_exc()\n"
        "    print(traceback.format_exception_only(error), len(traceback.format_exception(error)))\n"
    )
    trace = (
        "Traceback (most recent call last):\n"
        '  File "<script>", line 5, in <module>\n'
        '  File "<script>", line 3, in fail\n'
        "ZeroDivisionError: division by zero\n"
    )
    assert outcome.output == (f"ERROR:root:oh\n{trace}{trace}['ZeroDivisionError: division by zero\\n'] 4\n")


def test_tracebacks_name_no_files_of_the_guest_and_are_bounded() -> None:
    stage = Stage()
    traceback = stage["traceback"]
    assert traceback.format_exc() == "NoneType: None\n"
    assert traceback.format_exception_only(None) == ["NoneType: None\n"]
    error = ValueError()
    error.add_note("a hint")
    head = "Traceback (most recent call last):\n"
    assert traceback.format_exception(error) == [head, "ValueError\n", "a hint\n"]
    traceback.print_exception(error)
    assert stage.printed().endswith("ValueError\na hint\n")
    outcome = run(
        "import traceback\n"
        "def deep(n):\n"
        "    return 1 / 0 if n == 0 else deep(n - 1)\n"
        "try:\n"
        "    deep(100)\n"
        "except ZeroDivisionError:\n"
        "    print(traceback.format_exc().count('line'))\n"
    )
    assert outcome.output == "41\n"


def test_pretty_printing_goes_to_the_output_without_addresses() -> None:
    stage = Stage()
    pprint = stage["pprint"]
    pprint.pprint({"b": 1, "a": object()})
    pprint.pp({"b": 1, "a": 2})
    pprint.PrettyPrinter(width=5).pprint([1, 2])
    assert stage.printed() == "{'a': <object object>, 'b': 1}\n{'b': 1, 'a': 2}\n[1,\n 2]\n"
    assert pprint.pformat([1], indent=2) == "[1]"
    with pytest.raises(TypeError, match="stream is not available"):
        pprint.pprint(1, stream=io.StringIO())


def test_streams_are_the_output() -> None:
    stage = Stage()
    out = stage["sys"].stdout
    assert out.write("a") == 1
    out.writelines(["b", "c"])
    out.flush()
    assert not out.isatty()
    stage["sys"].stderr.write("d")
    assert stage.printed() == "abcd"
    with pytest.raises(TypeError, match="must be str"):
        out.write(1)
    with pytest.raises(SystemExit):
        stage["sys"].exit(3)


def test_each_run_has_a_decimal_context_of_its_own() -> None:
    first = Stage()["decimal"]
    first.getcontext().prec = 5
    second = Stage()["decimal"]
    assert second.getcontext().prec == 28
    with second.localcontext(prec=3):
        assert str(second.Decimal(1) / 3) == "0.333"
    assert second.DefaultContext is not first.DefaultContext
