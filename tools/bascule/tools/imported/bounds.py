"""How much of somebody else's definitions is taken in: beyond a bound less is known, never more trusted."""

from __future__ import annotations

from typing import Final

MAX_ARGUMENT_NODES: Final = 400
"""Schemas kept for the arguments of one tool; deeper parts become "anything", which the service checks."""

MAX_RESULT_NODES: Final = 80
"""Schemas kept for its result: they are told to models, who pay by the token."""

MAX_SCHEMA_DEPTH: Final = 32
MAX_REFERENCE_CHAIN: Final = 16
MAX_PROPERTIES: Final = 300
MAX_CHOICES: Final = 500
"""Values of one ``enum``."""

MAX_BRANCHES: Final = 32
"""What one schema may stand for through unions of unions; more is "anything"."""

MAX_PATTERN_CHARS: Final = 500
MAX_DESCRIPTION_CHARS: Final = 4000
MAX_CHECKED_STEPS: Final = 200_000
"""Steps of checking one argument against its schema."""
