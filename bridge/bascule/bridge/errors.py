"""Errors of the bridge that are about the operator's set-up, never about a script.

Everything that concerns a script is a Result; what is raised from here means that nothing ran, or that the
surroundings broke. The texts may name host paths and must not reach a model: ``for_script()`` is for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from bascule.wire import BasculeError


class PolicyError(BasculeError):
    """Raised when a policy file cannot be used (``policy_invalid``); correct the file.

    Attributes:
        problems: every finding, one line each.
    """

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__("policy_invalid", f"{where} cannot be used:\n{listed}")
        self.problems = tuple(problems)


class LimitsError(BasculeError):
    """Raised when a limit lies outside its bounds (``limits_invalid``); the message names the bounds."""

    def __init__(self, message: str) -> None:
        super().__init__("limits_invalid", message)


class HandshakeError(BasculeError):
    """Raised when the guest is not the program this host was installed with.

    Codes: ``protocol_mismatch`` (rebuild with ``bascule image build``) and ``guest_not_started`` (it said
    nothing in time, or ended before it said hello; the message carries the end of its stderr). Another image
    than ours is the sandbox's own ``image_mismatch``.
    """


class ExecutorClosedError(BasculeError):
    """Raised when a run is asked of an executor that was closed (``executor_closed``); make a new one."""

    def __init__(self) -> None:
        super().__init__("executor_closed", "this executor was closed; make a new one for further runs")
