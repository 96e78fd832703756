"""An MCP server over streamable HTTP, made with the official SDK: ``python weather.py PORT``."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("weather")


@server.tool()
async def forecast(city: str, days: int = 1, ctx: Context | None = None) -> list[dict[str, str]]:
    """Say how the weather will be."""
    if city == "Atlantis":
        raise ToolError("there is no such city")
    if ctx is not None:
        await ctx.report_progress(1, days)
    return [{"city": city, "day": str(day), "sky": "clear"} for day in range(days)]


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
