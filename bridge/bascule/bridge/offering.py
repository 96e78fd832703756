"""What the scripts of one executor may call: tools, those of sources once they are open, one policy, secrets.

Trusts the operator's tools and rules. What does not fit together (a rule that can never match, a secret that
a tool needs and nobody gave) is an error before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import cast

from bascule.bridge.approval_card import Card
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.policy import Policy
from bascule.bridge.redaction import Redactor
from bascule.bridge.result import JsonValue
from bascule.tools import ArgumentsInvalid, Registry, ToolDefinitionError
from bascule.tools.source import AnySource, KeepsSecrets, open_sources, split_sources


class Offering:
    """Made with an executor, opened and closed with it.

    Args:
        tools, policy, secrets, secret_patterns: see `Executor`.

    Attributes:
        registry, stubs: the tools; those of sources from the opening on.
        policy: the rules as they are now.
        secrets: the named ones, for tools that declare them.
        redactor: knows all of them.

    Raises:
        ToolDefinitionError, PolicyError: see `Executor`.
    """

    def __init__(
        self,
        tools: Registry | Iterable[AnySource],
        *,
        policy: Policy,
        secrets: Mapping[str, str] | Iterable[str],
        secret_patterns: Iterable[str],
    ) -> None:
        ready, self._sources = ([], []) if isinstance(tools, Registry) else split_sources(tools)
        self.registry = tools if isinstance(tools, Registry) else Registry(ready)
        self.stubs = self.registry.stubs()
        self.secrets: dict[str, str] = {}
        if isinstance(secrets, Mapping):
            self.secrets.update(cast("Mapping[str, str]", secrets))
            secrets = self.secrets.values()
        self.redactor = Redactor(secrets, secret_patterns)
        self.policy = policy
        if not self._sources:
            self._check(self.registry)
        self._open_sources = AsyncExitStack()

    @property
    def complete(self) -> bool:
        """Whether no source is still to be opened."""
        return not self._sources

    async def open(self) -> None:
        """Open the sources and take up their tools, all or none; does nothing the second time."""
        if self.complete:
            return
        for source in self._sources:
            if isinstance(source, KeepsSecrets):
                self.redactor.register(*source.secrets)
        async with AsyncExitStack() as stack:
            registry = Registry([*self.registry, *await open_sources(self._sources, stack)])
            self._check(registry)
            self.registry, self.stubs, self._sources = registry, registry.stubs(), []
            self._open_sources = stack.pop_all()

    async def close(self) -> None:
        """Close the sources."""
        await self._open_sources.aclose()

    def replace_policy(self, policy: Policy) -> None:
        """Use another policy from now on.

        Raises:
            PolicyError: a rule can never match these tools; the old policy stays.
        """
        if self.complete:
            policy.check(self.registry)
        self.policy = policy

    def check_edit(self, card: Card, arguments: Mapping[str, JsonValue]) -> bytes:
        """Return the canonical bytes of arguments that a person wrote in place of a card's.

        Raises:
            DecisionRefused: they are not valid, or the tool is not what was asked about.
        """
        tool = self.registry.get(card.tool)
        if tool is None or tool.digest != card.tool_digest:
            raise DecisionRefused("edit_not_allowed", f"the tool {card.tool} is not what was asked about")
        try:
            return tool.validate(dict(arguments)).canonical
        except ArgumentsInvalid as error:
            raise DecisionRefused("edit_not_allowed", error.message) from error

    def _check(self, registry: Registry) -> None:
        self.policy.check(registry)
        for tool in registry:
            for name in tool.secrets:
                if name not in self.secrets:
                    raise ToolDefinitionError(
                        "tool_secret_missing",
                        f"{tool.name} needs the secret {name}; give it: secrets={{{name!r}: ...}}, "
                        f"on the command line --secret {name}",
                        location=tool.location,
                    )
