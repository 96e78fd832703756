"""Vectors for `ToolIndex` from a small model that is shipped inside a package: no download, no service.

Needs the extra ``embeddings``. The model (wordllama, 256 numbers a text) knows English best; Chinese is left
to the keywords.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bascule.tools.errors import ToolLoadError


class WordEmbedder:
    """Averages of word vectors, in memory.

    Raises:
        ToolLoadError: ``extra_missing``: the package is not installed or came without its model.
    """

    def __init__(self) -> None:
        try:
            import wordllama  # type: ignore[import-untyped]

            # Both files are inside the wheel, but the package looks for its tokenizer elsewhere first (in a
            # folder without the s), and would go to the network for it.
            here = Path(wordllama.__file__).parent
            self._model: Any = wordllama.WordLlama.load(cache_dir=here, disable_download=True)
        except (ImportError, OSError) as error:
            raise ToolLoadError(
                "extra_missing", f"the embeddings need: pip install 'bascule[embeddings]' ({error})"
            ) from error

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""
        vectors: list[list[float]] = self._model.embed(list(texts)).tolist()
        return vectors
