"""decimal with a context of the run's own."""

from __future__ import annotations

import decimal

from bascule.guest.facade import FacadeContext, Members


def decimal_module(context: FacadeContext) -> Members:
    """Give decimal: the current context starts afresh, and the three template contexts are copies."""
    fresh = decimal.Context(
        prec=28,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=-999999,
        Emax=999999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[decimal.DivisionByZero, decimal.Overflow, decimal.InvalidOperation],
    )
    decimal.setcontext(fresh)

    def localcontext(ctx: decimal.Context | None = None, **settings: object) -> object:
        return decimal.localcontext(ctx, **settings)  # type: ignore[arg-type]

    return {
        "BasicContext": decimal.BasicContext.copy(),
        "DefaultContext": fresh.copy(),
        "ExtendedContext": decimal.ExtendedContext.copy(),
        "localcontext": localcontext,
    }
