"""OpenAPI documents as sources of tools (extra ``openapi``): selected, confirmed, called.

Trusts the operator's selection file, and nothing that a document or its service says.
"""

try:
    import httpx2 as _http
except ModuleNotFoundError as error:
    from bascule.tools.errors import ToolLoadError

    raise ToolLoadError(
        "extra_missing", "OpenAPI documents need an extra: pip install 'bascule[openapi]'"
    ) from error

from bascule.tools.openapi.document import Document, read_document
from bascule.tools.openapi.selection import Selection
from bascule.tools.openapi.source import OpenApiSource, read_source

del _http

__all__ = ["Document", "OpenApiSource", "Selection", "read_document", "read_source"]
