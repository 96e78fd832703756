"""Who decides on the command line, and which secrets of a run must not be typed there."""

from __future__ import annotations

import grp
import os
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from bascule.bridge.approval import Decision
from bascule.bridge.errors import PolicyError
from bascule.bridge.history import StartedRun
from bascule.bridge.matching import User
from bascule.bridge.policy import Policy
from bascule.bridge.redaction import MIN_SECRET_CHARS, Redactor
from bascule.bridge.terminal import whoami


def secrets_of(begun: StartedRun | None) -> Redactor:
    """Return what knows the secrets a run was begun with, those that are set here, too."""
    flags = () if begun is None or begun.command is None else begun.command.flags
    names = [name for flag, name in pairwise(flags) if flag == "--secret"]
    values = [os.environ.get(name, "") for name in names]
    return Redactor(value for value in values if len(value) >= MIN_SECRET_CHARS)


def policies_of(begun: StartedRun | None) -> list[Path]:
    """Return the rule files a run was begun with on the command line."""
    if begun is None or begun.command is None:
        return []
    folder = Path(begun.command.folder)
    return [folder / value for flag, value in pairwise(begun.command.flags) if flag == "--policy"]


def sign(decision: Decision, policy: list[Path] | None, begun: StartedRun | None = None) -> Decision:
    """Return a decision in the name of whoever runs this process, with the groups of system and policy.

    Args:
        policy: rule files whose groups count; without any, those that the run was begun with.
        begun: how the run was begun.
    """
    groups: set[str] = set()
    for number in os.getgroups():
        try:
            groups.add(grp.getgrgid(number).gr_name)
        except KeyError:
            continue  # a group without a name
    user = User(name=whoami(), groups=frozenset(groups))
    known = _load_groups(policy, begun).identify(user)
    assert known is not None
    return replace(decision, by=known.name, groups=known.groups)


def _load_groups(policy: list[Path] | None, begun: StartedRun | None) -> Policy:
    """Load the files whose groups count; what the run was begun with may be gone, and then does not count."""
    if policy:
        return Policy.load(*policy)
    try:
        files = policies_of(begun)
        return Policy.load(*files) if files else Policy.default()
    except PolicyError as error:
        print(f"bascule: groups of the rules the run was begun with do not count: {error}", file=sys.stderr)
        return Policy.default()
