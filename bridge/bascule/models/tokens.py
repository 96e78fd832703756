"""How many tokens a text is: what counts them for one model, with `bound_tokens` as the default."""

from __future__ import annotations

from collections.abc import Callable

CountTokens = Callable[[str], int]
"""Returns the tokens of a text."""
