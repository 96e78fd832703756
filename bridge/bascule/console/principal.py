"""Who a request comes from and what that lets it do: the one table of rights.

A scope is one of four and nobody has two: what submits scripts (``run``) can never look at other people's
runs or decide about a call, whatever its name and groups are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from bascule.bridge.matching import User

Scope = Literal["run", "view", "approve", "admin"]
Right = Literal["submit", "read", "decide", "administer"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

_RIGHTS: Final[dict[Scope, frozenset[Right]]] = {
    "run": frozenset({"submit"}),
    "view": frozenset({"read"}),
    "approve": frozenset({"read", "decide"}),
    "admin": frozenset({"read", "decide", "administer"}),
}

ROLES: Final[dict[Scope, str]] = {
    "run": "submitter",
    "view": "viewer",
    "approve": "operator",
    "admin": "admin",
}
"""How people call the scopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody who was authenticated.

    Attributes:
        name, groups: as policy and `decide` know them.
        channel: how decisions of this one are recorded.
        form_secret: what form tokens of this login are made from; empty where there are no forms.
    """

    name: str
    groups: frozenset[str]
    scope: Scope
    channel: str
    form_secret: str = ""

    def may(self, right: Right) -> bool:
        """Tell whether this one has a right."""
        return right in _RIGHTS[self.scope]

    @property
    def role(self) -> str:
        """The scope as people call it."""
        return ROLES[self.scope]

    @property
    def user(self) -> User:
        """As policy knows this one."""
        return User(name=self.name, groups=self.groups)

    def may_see(self, owner: str | None) -> bool:
        """Tell whether this one may see the run of a user: submitters see their own only."""
        return self.may("read") or (self.may("submit") and owner == self.name)
