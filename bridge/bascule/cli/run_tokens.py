"""What ``--json`` says of tokens: the account of one run, as if a model had written its script."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bascule.bridge import Executor, Result
    from bascule.models.definitions import JsonObject


def count_tokens(executor: Executor, result: Result, script: str | None = None) -> JsonObject | None:
    """Return the account of a run over the surface that a model would have been given.

    Args:
        executor: it may be closed.
        script: what was run; None reads it from the executor's store. Without it there is no account.
    """
    from bascule.models.run_account import script_of
    from bascule.models.surface import ToolSurface

    text = script_of(executor.store, result.run_id) if script is None else script
    if not text:
        return None
    meter = ToolSurface(executor).meter
    return meter.measure(result, text, text=result.for_model(), direct=False).to_data()
