"""MCP servers as sources of tools (extra ``mcp``): started or reached, confirmed, called.

Trusts the operator's configuration and confirmations, and nothing that a server says.
"""

try:
    import mcp as _sdk
except ModuleNotFoundError as error:
    from bascule.tools.errors import ToolLoadError

    raise ToolLoadError("extra_missing", "MCP servers need an extra: pip install 'bascule[mcp]'") from error

from bascule.tools.mcp.config import ServerConfig, read_config
from bascule.tools.mcp.confirmed import Confirmations
from bascule.tools.mcp.offer import Waiting
from bascule.tools.mcp.source import McpSource, read_source

del _sdk

__all__ = ["Confirmations", "McpSource", "ServerConfig", "Waiting", "read_config", "read_source"]
