"""``store.put``, ``store.get``, ``store.slice``, ``read_output``: they keep big data out of contexts.

What they keep is the run's own scratch: nothing that a person or a later decision relies on, hence the
effect ``read`` (docs/decisions/058-scratch-is-read.md). A script reaches only what was kept for its user.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from bascule.bridge.artifacts import ArtifactRefused
from bascule.bridge.outputs import MAX_LIMIT, Part, find_at, keep, read_kept, read_output
from bascule.bridge.store import Store
from bascule.tools import AnyTool, ToolContext, tool

Handle = Annotated[str, Field(max_length=100)]
Offset = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]

SCRATCH_LABEL = "scratch"


def artifact_tools(store: Store) -> list[AnyTool]:
    """Return the tools over a store; give an executor the same store.

    They keep up to 16 MiB a value, 64 MiB a run, 256 MiB and 2000 values a user, each for a day.
    """

    @tool(name="store.put", effects="read", labels={SCRATCH_LABEL})
    def put(value: JsonValue, context: ToolContext) -> str:
        """Keep a value for later scripts and return its handle; print the handle, not the value.

        Args:
            value: any JSON value, up to 16 MiB.
        """
        try:
            return keep(
                store,
                value,
                owner=context.user or "",
                run_id=context.run_id,
                idempotency_key=context.idempotency_key,
            )
        except ArtifactRefused as error:
            raise ValueError(error.for_script()) from error

    @tool(name="store.get", effects="read", labels={SCRATCH_LABEL}, parallel_safe=True)
    def get(handle: Handle, context: ToolContext, path: str | None = None) -> JsonValue:
        """Return a value that was kept, or the part of it at a path.

        Args:
            handle: as store.put returned it, or as a note about left out output names it.
            path: the way to a part, like rows[3].name; None for the whole.
        """
        return find_at(read_kept(store, handle, owner=context.user or ""), path or "")

    @tool(name="store.slice", effects="read", labels={SCRATCH_LABEL}, parallel_safe=True)
    def cut(
        handle: Handle, context: ToolContext, offset: Offset = 0, limit: Limit = 100, path: str | None = None
    ) -> Part:
        """Return some items of a list, members of an object or characters of a text that was kept.

        Args:
            handle: as store.put returned it, or as a note about left out output names it.
            offset: where to begin.
            limit: how many.
            path: the way to what is cut, like rows; None for the whole value.
        """
        return read_output(store, handle, offset=offset, limit=limit, path=path, owner=context.user or "")

    @tool(name="read_output", effects="read", labels={SCRATCH_LABEL}, parallel_safe=True)
    def read(
        handle: Handle, context: ToolContext, offset: Offset = 0, limit: Limit = 100, path: str | None = None
    ) -> Part:
        """Read on in the output of an earlier script that was cut.

        Args:
            handle: from the note about what was left out, or the id of a finished run.
            offset: where to begin.
            limit: how many items, members or characters.
            path: the way to what is wanted, like value.rows.
        """
        return read_output(store, handle, offset=offset, limit=limit, path=path, owner=context.user or "")

    return [put, get, cut, read]
