"""Finds tools by what somebody wants to do: keywords ranked by BM25, slips forgiven, vectors if wanted.

The ranking is SQLite's own full-text index (FTS5), in memory, built once. A question is untrusted text: it is
cut into words before it goes anywhere, so it cannot be a query in SQLite's language.
"""

from __future__ import annotations

import difflib
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any, Final, Protocol

from bascule.tools.errors import ToolDefinitionError
from bascule.tools.registry import Registry
from bascule.tools.safe_text import clean_line
from bascule.tools.stubs import render_signature, render_stubs
from bascule.tools.synonyms import synonyms_of
from bascule.tools.tool import AnyTool
from bascule.tools.words import query_words, split_words

MAX_QUERY_CHARS: Final = 500
MAX_QUERY_WORDS: Final = 24
MAX_LIMIT: Final = 50

_WEIGHTS: Final[Mapping[str, float]] = {
    "name": 8.0,
    "namespace": 4.0,
    "summary": 4.0,
    "parameters": 1.0,
    "description": 1.0,
    "synonyms": 1.5,
}
"""Columns of the index, and what a word counts that is found there."""

_CORRECTED_WEIGHT: Final = 0.7
_CLOSE: Final = 0.75
_MIN_CORRECTED_CHARS: Final = 4
_VECTOR_SHARE: Final = 0.35


class Embedder(Protocol):
    """Turns texts into vectors; their direction is what they mean."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector for each text, all of the same length."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One tool that was found.

    Attributes:
        name: what a script writes.
        summary: one line.
        signature: one line, ``crm.find_contact(name: str) -> list[Contact]``.
        score: higher is better; comparable within one search only.
    """

    name: str
    summary: str
    signature: str
    score: float


class ToolIndex:
    """The tools of a registry, to be searched. May be used from several threads.

    Args:
        tools: what can be found.
        embedder: adds vectors to the ranking, or None.
        pinned: names of tools that are shown without being searched for.

    Raises:
        ToolDefinitionError: ``tool_pinned_unknown``, or two tools have one name.
    """

    def __init__(
        self,
        tools: Iterable[AnyTool | Callable[..., Any]],
        *,
        embedder: Embedder | None = None,
        pinned: Collection[str] = (),
    ) -> None:
        self._registry = Registry(tools)
        self._tools = tuple(self._registry)
        for name in pinned:
            if name not in self._registry:
                raise ToolDefinitionError(
                    "tool_pinned_unknown", f"{name!r:.100} is pinned, but there is no tool of this name"
                )
        self.pinned = tuple(each.name for each in self._tools if each.name in pinned)
        self._lock = threading.Lock()
        self._words: set[str] = set()
        self._connection = self._build()
        self._embedder = embedder
        self._vectors = [] if embedder is None else [_unit(each) for each in self._embed_tools(embedder)]

    def search(self, query: str, limit: int = 5) -> list[Match]:
        """Return the tools that fit a question best, best first; nothing when nothing fits.

        Args:
            query: untrusted; English or Chinese keywords or a sentence, `MAX_QUERY_CHARS` of it are read.
                Without a word the pinned tools are returned.
            limit: how many, 1 to `MAX_LIMIT`.

        Raises:
            ValueError: the limit is out of range.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise ValueError(f"limit must be 1 to {MAX_LIMIT}, got {limit}")
        words = query_words(query[:MAX_QUERY_CHARS])[:MAX_QUERY_WORDS]
        if not words:
            return [_match(each, 0.0) for each in self._tools if each.name in self.pinned][:limit]
        scores = self._keyword_scores(words)
        if self._embedder is not None:
            scores = self._add_vectors(scores, self._embedder, query[:MAX_QUERY_CHARS])
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
        return [_match(self._tools[number], score) for number, score in best]

    def describe(self, name: str) -> str:
        """Return the full stub of a tool, with the shapes of what it takes and gives.

        Raises:
            LookupError: there is no such tool; the message names the nearest.
        """
        found = self._registry.get(name)
        if found is None:
            nearest = self._registry.nearest(name)
            hint = f"; did you mean {' or '.join(nearest)}?" if nearest else "; search for it"
            raise LookupError(f"there is no tool {name!r:.100}{hint}")
        return render_stubs([found], detail="full")

    def namespaces(self) -> dict[str, int]:
        """Return how many tools each namespace has, in their order; those without one under ``""``."""
        return dict(Counter(each.name.rpartition(".")[0] for each in self._tools))

    def __len__(self) -> int:
        return len(self._tools)

    # ------------------------------------------------------------ keywords

    def _build(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        columns = ", ".join(_WEIGHTS)
        connection.execute(f"CREATE VIRTUAL TABLE tools USING fts5({columns}, tokenize='porter unicode61')")
        marks = ", ".join("?" for _ in _WEIGHTS)
        for number, each in enumerate(self._tools):
            row = _indexed(each)
            self._words.update(word for words in row.values() for word in words)
            texts = [" ".join(row[column]) for column in _WEIGHTS]
            connection.execute(
                f"INSERT INTO tools(rowid, {columns}) VALUES (?, {marks})", (number + 1, *texts)
            )
        return connection

    def _keyword_scores(self, words: Sequence[str]) -> dict[int, float]:
        """Return the score of each tool that holds a word; those that hold more of them count for more."""
        scores: defaultdict[int, float] = defaultdict(float)
        found: Counter[int] = Counter()
        for word in words:
            ranked, weight = self._look_up(word), 1.0
            if not ranked:
                ranked, weight = self._look_up(*self._corrections(word)), _CORRECTED_WEIGHT
            for number, score in ranked:
                scores[number] += weight * score
                found[number] += 1
        return {number: score * (0.5 + 0.5 * found[number] / len(words)) for number, score in scores.items()}

    def _look_up(self, *words: str) -> list[tuple[int, float]]:
        if not words:
            return []
        question = " OR ".join(f'"{word}"' for word in words)
        weights = ", ".join(map(str, _WEIGHTS.values()))
        with self._lock:
            rows = self._connection.execute(
                f"SELECT rowid, -bm25(tools, {weights}) FROM tools WHERE tools MATCH ?", (question,)
            ).fetchall()
        return [(number - 1, score) for number, score in rows]

    def _corrections(self, word: str) -> list[str]:
        """Return known words that an unknown one may be a slip of."""
        if len(word) < _MIN_CORRECTED_CHARS:
            return []
        near = [each for each in self._words if abs(len(each) - len(word)) <= 2]
        return difflib.get_close_matches(word, near, n=2, cutoff=_CLOSE)

    # ------------------------------------------------------------ vectors

    def _embed_tools(self, embedder: Embedder) -> Sequence[Sequence[float]]:
        texts = [f"{' '.join(split_words(each.name))}: {clean_line(each.summary)}" for each in self._tools]
        return embedder.embed(texts) if texts else []

    def _add_vectors(self, scores: dict[int, float], embedder: Embedder, query: str) -> dict[int, float]:
        """Mix both rankings: the best keyword score counts as 1, as does the same direction."""
        asked = _unit(embedder.embed([query])[0])
        best = max(scores.values(), default=0.0) or 1.0
        return {
            number: (1 - _VECTOR_SHARE) * scores.get(number, 0.0) / best
            + _VECTOR_SHARE * max(sum(map(float.__mul__, asked, vector)), 0.0)
            for number, vector in enumerate(self._vectors)
        }


def _indexed(tool: AnyTool) -> dict[str, list[str]]:
    namespace, _, name = tool.name.rpartition(".")
    properties: Mapping[str, Any] = tool.parameters["properties"]
    parameters = [word for parameter in properties for word in split_words(parameter)]
    told = [
        word for schema in properties.values() for word in split_words(str(schema.get("description", "")))
    ]
    own = [*split_words(name), *split_words(namespace), *split_words(tool.summary)]
    synonyms = dict.fromkeys(other for word in own for other in sorted(synonyms_of(word)))
    return {
        "name": split_words(name),
        "namespace": split_words(namespace),
        "summary": split_words(tool.summary),
        "parameters": [*parameters, *told],
        "description": split_words(tool.description.replace(tool.summary, "", 1)),
        "synonyms": [word for word in synonyms if word not in own],
    }


def _match(tool: AnyTool, score: float) -> Match:
    return Match(
        name=tool.name,
        summary=clean_line(tool.summary),
        signature=render_signature(tool),
        score=float(f"{score:.4g}"),
    )


def _unit(vector: Sequence[float]) -> list[float]:
    numbers = [float(each) for each in vector]
    length = hypot(*numbers) or 1.0
    return [each / length for each in numbers]
