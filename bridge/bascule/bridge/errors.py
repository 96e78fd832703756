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


class StoreError(BasculeError):
    """Raised when the store cannot be used. Nothing was written, no tool was started.

    Codes: ``store_unavailable`` (full, read-only, locked, gone: make room or rights and resume the run),
    ``store_newer`` (written by a newer version: upgrade), ``store_invalid`` (no store of ours, or damaged).
    """


class LeaseLost(BasculeError):
    """Raised when another worker took a run over (``lease_lost``); this one must end and start no tool."""

    def __init__(self, run_id: str) -> None:
        super().__init__("lease_lost", f"another worker has taken over {run_id}; this one stops")


class RunNotFound(BasculeError):
    """Raised when the store holds no such run (``run_not_found``); ``bascule runs list`` shows them."""

    def __init__(self, run_id: str) -> None:
        super().__init__("run_not_found", f"there is no run {run_id} in this store")


class RunBusy(BasculeError):
    """Raised when a run cannot be taken over, or begun.

    Codes: ``run_busy`` (a live worker has it: wait, or cancel it), ``run_finished`` (nothing is left) and
    ``run_exists`` (a new run was given the name of another).
    """


class ResumeError(BasculeError):
    """Raised when a run cannot go on here.

    Codes: ``image_gone`` (it was begun on another guest image: resume where that one is installed),
    ``journal_newer`` (written by a newer version), ``journal_damaged`` (its hash chain does not hold) and
    ``journal_pruned`` (retention dropped the values that replay needs), ``nothing_unknown`` (of a call that
    somebody wants to resolve), ``recording_unfinished`` and ``recording_invalid`` (see recording.py).
    """


class DecisionRefused(BasculeError):
    """Raised when a decision about an approval is not written; read the approval again and decide anew.

    Codes: ``approval_not_found``, ``approval_closed`` (decided, expired or moot), ``digest_mismatch``
    (something else was displayed), ``not_an_approver``, ``self_approval``, ``already_decided``,
    ``move_not_allowed``, ``edit_not_allowed``, ``response_invalid``, ``grant_not_allowed``.
    """
