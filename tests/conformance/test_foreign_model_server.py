"""The adapters against a scripted server of others: npm `@copilotkit/aimock`, fetched when the test runs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bascule.models import Agent
from tests.conformance.packages import NODE, fetch_npm
from tests.forks.backend import ForkBackend
from tests.models.apis import APIS, make_adapter
from tests.models.world import Shop, open_executor

AIMOCK = "@copilotkit/aimock@1.43.0"
FIXTURES = {
    "fixtures": [
        {
            "match": {"hasToolResult": False},
            "response": {
                "content": "Let me look.",
                "toolCalls": [
                    {
                        "name": "run_script",
                        "arguments": {"code": "len(crm.orders(customer='Ann', status='open'))"},
                    },
                    {"name": "crm-orders", "arguments": {"customer": "Bob", "status": None}},
                ],
            },
        },
        {
            "match": {"hasToolResult": True, "toolResultContains": "Bob"},
            "response": {"content": "20 are open."},
        },
    ]
}


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the foreign server on a free port; give its address."""
    folder = tmp_path_factory.mktemp("aimock")
    (folder / "fixtures.json").write_text(json.dumps(FIXTURES), encoding="utf-8")
    cli = fetch_npm(AIMOCK) / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    command: list[str | Path] = [NODE, cli, "-p", "0", "-f", folder / "fixtures.json", "--strict"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"http://[\d.]+:\d+", line)
            if found:
                yield found[0]
                break
        server.terminate()


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
async def test_the_loop_works_over_a_server_that_others_wrote(aimock: str, api: str, stream: bool) -> None:
    from google.genai import Client
    from google.genai.types import HttpOptions

    backend = ForkBackend()
    options: dict[str, Any] = {"stream": stream}
    if api == "gemini":  # it knows the API by its beta path only
        options["client"] = Client(
            api_key="key", http_options=HttpOptions(base_url=aimock, api_version="v1beta")
        )
    client = make_adapter(api, aimock, **options)
    async with open_executor(backend, Shop()) as executor:
        result = await Agent(client, executor).run("How many of Ann's orders are open?")
    await client.close()
    await backend.close()
    assert (result.status, result.text, result.rounds) == ("done", "20 are open.", 2)
    assert len(result.state.runs) == 2
