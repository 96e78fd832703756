"""random, secrets and uuid, all drawn from the run's seed, so that a replay draws the same.

``secrets`` is here because scripts import it. What it gives is not secret: whoever knows the seed knows it.
"""

from __future__ import annotations

import base64
import random
import uuid
from _operator import _compare_digest as compare_digest  # pyright: ignore[reportPrivateUsage]

from bascule.guest.facade import FacadeContext, Members, Rows
from bascule.guest.rules.attributes import ATTRIBUTES, NOTHING, names

_SEED_BITS = 64
_TOKEN_BYTES = 32
_EPOCH_100NS = 0x01B21DD213814000  # from 1582-10-15 to 1970-01-01, RFC 9562 section 5.1

_FUNCTIONS = sorted(ATTRIBUTES[random.Random] | names("getstate setstate"))


def _random_class(source: random.Random) -> type[random.Random]:
    class Random(random.Random):
        """Pseudo-random numbers; without a seed they come from the run's."""

        def __init__(self, x: int | float | str | bytes | bytearray | None = None) -> None:
            super().__init__(x)

        def seed(  # type: ignore[override]
            self, a: int | float | str | bytes | bytearray | None = None, version: int = 2
        ) -> None:
            super().seed(source.getrandbits(_SEED_BITS) if a is None else a, version)

    Random.__module__ = "random"
    Random.__qualname__ = "Random"
    return Random


def random_module(context: FacadeContext) -> Members:
    """Give random: module functions and Random() start from the run's seed."""
    own = _random_class(context.environment.rng)
    shared = own()
    row = ATTRIBUTES[random.Random] | names("getstate setstate")
    context.guards.admit(Rows(instances={own: row}, classes={own: NOTHING}, extensible=frozenset({own})))
    functions = {name: getattr(shared, name) for name in _FUNCTIONS if hasattr(shared, name)}
    return {"Random": own, "SystemRandom": own, **functions}


def secrets_module(context: FacadeContext) -> Members:
    """Give secrets, predictable by design."""
    own = _random_class(context.environment.rng)
    shared = own()

    def token_bytes(nbytes: int | None = None) -> bytes:
        return shared.randbytes(_TOKEN_BYTES if nbytes is None else nbytes)

    def token_hex(nbytes: int | None = None) -> str:
        return token_bytes(nbytes).hex()

    def token_urlsafe(nbytes: int | None = None) -> str:
        return base64.urlsafe_b64encode(token_bytes(nbytes)).rstrip(b"=").decode("ascii")

    def randbelow(exclusive_upper_bound: int) -> int:
        if exclusive_upper_bound <= 0:
            raise ValueError("Upper bound must be positive.")
        return shared.randrange(exclusive_upper_bound)

    row = ATTRIBUTES[random.Random]
    context.guards.admit(Rows(instances={own: row}, classes={own: NOTHING}))
    return {
        "SystemRandom": own,
        "choice": shared.choice,
        "compare_digest": compare_digest,
        "randbelow": randbelow,
        "randbits": shared.getrandbits,
        "token_bytes": token_bytes,
        "token_hex": token_hex,
        "token_urlsafe": token_urlsafe,
    }


def uuid_module(context: FacadeContext) -> Members:
    """Give uuid: 1 from the run's clock and seed, 4 from its seed."""
    source, clock = context.environment.rng, context.environment.clock

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=source.getrandbits(128), version=4)

    def uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
        stamp = int(clock.now * 10_000_000) + _EPOCH_100NS
        sequence = source.getrandbits(14) if clock_seq is None else clock_seq
        fields = (
            stamp & 0xFFFFFFFF,
            (stamp >> 32) & 0xFFFF,
            (stamp >> 48) & 0x0FFF,
            (sequence >> 8) & 0x3F,
            sequence & 0xFF,
            # The multicast bit says that the node is random, not a network card (RFC 9562 section 6.10).
            source.getrandbits(48) | (1 << 40) if node is None else node,
        )
        return uuid.UUID(fields=fields, version=1)

    return {"uuid1": uuid1, "uuid4": uuid4}


def statistics_module(context: FacadeContext) -> Members:
    """Give statistics; NormalDist.samples draws from the process-wide generator, so seed that."""
    random.seed(context.environment.rng.getrandbits(_SEED_BITS))
    return {}
