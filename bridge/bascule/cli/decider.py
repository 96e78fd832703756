"""Who decides on the command line, and which secrets of a run must not be typed there."""

from __future__ import annotations

import grp
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from bascule.bridge.approval import Decision
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


def sign(decision: Decision, policy: list[Path] | None) -> Decision:
    """Return a decision in the name of whoever runs this process, with the groups of system and policy."""
    groups: set[str] = set()
    for number in os.getgroups():
        try:
            groups.add(grp.getgrgid(number).gr_name)
        except KeyError:
            continue  # a group without a name
    user = User(name=whoami(), groups=frozenset(groups))
    known = Policy.load(*policy).identify(user) if policy else user
    assert known is not None
    return replace(decision, by=known.name, groups=known.groups)
