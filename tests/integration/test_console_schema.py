"""The API held against its own OpenAPI document by schemathesis: no crash, no undocumented answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi import checks

from bascule.console.app import OPERATIONS
from tests.integration.console_server import Server, make_server

EXAMPLES: Final = int(os.environ.get("BASCULE_SCHEMA_EXAMPLES", "4"))
"""Cases for each operation and principal."""

_checks: Any = checks
CHECKS: Final = [
    _checks.content_type_conformance,
    _checks.response_schema_conformance,
    _checks.status_code_conformance,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = make_server(tmp_path_factory.mktemp("schema"), "--requests-per-minute", "1000000")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def operations(server: Server) -> dict[str, Any]:
    schema: Any = cast("Any", schemathesis).openapi.from_url(f"{server.url}/v1/openapi.json")
    found = [result.ok() for result in schema.get_all_operations()]
    return {operation.label: operation for operation in found}


def test_every_operation_is_in_the_document(operations: dict[str, Any]) -> None:
    assert len(operations) == len(OPERATIONS)


@pytest.mark.parametrize("who", ["ada", "app"])
def test_every_answer_is_a_documented_one(server: Server, operations: dict[str, Any], who: str) -> None:
    for label, operation in operations.items():
        if label.endswith("/events"):
            continue  # a stream, see test_console_api

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.filter_too_much,
                HealthCheck.data_too_large,
            ],
        )
        @given(case=operation.as_strategy())
        def hold(case: Any) -> None:
            if case.query:
                case.query.pop("wait", None)  # it would only take long
            answer = case.call(headers={"authorization": f"Bearer {server.tokens[who]}"}, timeout=60)
            case.validate_response(
                answer,
                checks=CHECKS,
            )
            assert answer.status_code != 500

        hold()
    log = (server.folder / "serve.log").read_text("utf-8")
    assert "Traceback" not in log
