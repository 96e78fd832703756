"""What is common to tools that are imported: names, schemas and checks for definitions that are not ours.

Trusts nothing in them. `bascule.tools.mcp` and `bascule.tools.openapi` are built on it.
"""

from bascule.tools.imported.choosing import choose_names, choose_namespace
from bascule.tools.imported.tool import Member, Operation, import_tool

__all__ = ["Member", "Operation", "choose_names", "choose_namespace", "import_tool"]
