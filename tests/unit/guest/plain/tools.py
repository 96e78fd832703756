"""The tools that the scripts beside this file call: the same functions for plain Python and for the guest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_CUSTOMERS: dict[str, dict[str, Any]] = {
    "C1": {"id": "C1", "name": "Ada Lovelace", "email": "ada@example.com", "tier": "gold", "country": "GB"},
    "C2": {"id": "C2", "name": "Boris Ng", "email": "boris@example.org", "tier": "silver", "country": "SG"},
    "C3": {"id": "C3", "name": "Chloé Dupont", "email": "chloe@example.fr", "tier": "gold", "country": "FR"},
    "C4": {"id": "C4", "name": "Dmitri O'Neil", "email": None, "tier": "basic", "country": "IE"},
}
_STATUSES = ("paid", "pending", "refunded", "paid", "paid")
_ORDERS: list[dict[str, Any]] = [
    {
        "id": f"O{n:03}",
        "customer_id": f"C{n % 4 + 1}",
        "status": _STATUSES[n % 5],
        "currency": ("EUR", "USD", "GBP")[n % 3],
        "total": round(17.35 * (n % 7 + 1) + n, 2),
        "placed_at": f"2025-0{n % 6 + 1}-{n % 27 + 1:02}T{n % 24:02}:{n * 7 % 60:02}:00+00:00",
        "lines": [
            {"sku": f"SKU-{(n + k) % 9}", "quantity": k + 1, "price": 3.5 * (k + 1)} for k in range(n % 3 + 1)
        ],
        "note": None if n % 4 else f"gift #{n}",
    }
    for n in range(23)
]
_STOCK = {f"SKU-{n}": (n * 37) % 50 for n in range(9)}
_RATES = {("EUR", "USD"): 1.0842, ("GBP", "USD"): 1.2731, ("USD", "USD"): 1.0}
_LOG = """\
2025-03-01 10:00:01,123 INFO  api[12] request id=a1 path=/v1/orders status=200 ms=12
2025-03-01 10:00:02,456 WARN  api[12] slow query id=a1 ms=950
2025-03-01 10:00:02,789 ERROR api[13] request id=b2 path=/v1/pay status=500 ms=31 err="card declined"
2025-03-01 10:00:03,000 INFO  worker[7] job done id=j9 ms=5
malformed line
2025-03-01 10:00:05,250 ERROR api[13] request id=c3 path=/v1/pay status=502 ms=2201 err="bad gateway"
"""
_CSV = """\
name,dept,salary,start
"Smith, Jane",Eng,"120,000.50",2019-04-01
O'Hara,Ops,81000,2021-11-15
Li Wei,Eng,99000,
"""
_JSON = """{"service": "billing", "ports": [80, 443], "env": {"DEBUG": "0", "REGION": "eu-west-1"},
"ratio": 0.25, "on": true, "off": null}"""


def list_customers() -> list[dict[str, Any]]:
    """List every customer."""
    return [dict(each) for each in _CUSTOMERS.values()]


def get_customer(customer_id: str) -> dict[str, Any]:
    """Return one customer."""
    if customer_id not in _CUSTOMERS:
        raise LookupError(f"no customer {customer_id}")
    return dict(_CUSTOMERS[customer_id])


def list_orders(status: str | None = None, page: int = 1, per_page: int = 10) -> dict[str, Any]:
    """List orders, a page at a time."""
    found = [each for each in _ORDERS if status in (None, each["status"])]
    start = (page - 1) * per_page
    return {
        "items": found[start : start + per_page],
        "page": page,
        "pages": -(-len(found) // per_page),
        "total": len(found),
    }


def get_rate(base: str, quote: str) -> float:
    """Return an exchange rate."""
    if (base, quote) not in _RATES:
        raise ValueError(f"unknown pair {base}/{quote}")
    return _RATES[base, quote]


def get_stock(sku: str) -> int:
    """Return how many there are."""
    return _STOCK[sku]


def send_email(to: str, subject: str, body: str) -> dict[str, Any]:
    """Send a message."""
    if "@" not in to:
        raise ValueError("to must be an e-mail address")
    return {"id": f"m-{len(to) + len(subject) + len(body)}", "status": "queued"}


def get_log(service: str) -> str:
    """Return the log of a service."""
    return _LOG


def fetch_csv(name: str) -> str:
    """Return a table as CSV text."""
    return _CSV


def fetch_json(name: str) -> str:
    """Return a document as JSON text."""
    return _JSON


TOOLS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        list_customers,
        get_customer,
        list_orders,
        get_rate,
        get_stock,
        send_email,
        get_log,
        fetch_csv,
        fetch_json,
    )
}
