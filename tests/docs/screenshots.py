"""Makes the screenshots of docs/console.md: ``python -m tests.docs.screenshots`` (needs Chromium)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.integration.console_browser import log_in, new_context, open_browser
from tests.integration.console_server import make_server

FOLDER: Final = Path(__file__).parents[2] / "docs" / "screenshots"

SCRIPT: Final = """import asyncio

async def main():
    customer = await crm.find(name="Ada")
    print("found", customer["id"])
    mails = await asyncio.gather(*[
        mail.send(to=customer["email"], subject=subject, body="Hello Ada,\\nthank you for your patience.\\n")
        for subject in ("Your refund", "Your receipt")
    ])
    return len(mails)

await main()
"""

SINGLE: Final = """found = crm.find(name="Ada")
mail.send(to=found["email"], subject="One moment, Ada", body="We look into it.\\nYour team")
"""


def main() -> None:
    """Write the screenshots."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        server = make_server(Path(folder))
        try:
            done = server.submit(SCRIPT)["id"]
            for approval in server.pending(2, run=done):
                server.decide("otto", approval, "approve")
            server.finished(done)
            server.submit(SCRIPT)
            server.submit('billing.refund(customer="C-77", amount=900)')
            single = server.submit(SINGLE)["id"]
            (approval,) = server.pending(1, run=single)
            server.pending(4)
            desktop = new_context(browser, viewport={"width": 960, "height": 640})
            page = log_in(desktop, server, "olga")
            page.screenshot(path=FOLDER / "inbox.png")
            page.goto(f"{server.url}/approvals/{approval['id']}")
            page.screenshot(
                path=FOLDER / "card.png", clip={"x": 0, "y": 0, "width": 960, "height": 1000}, full_page=True
            )
            page.goto(f"{server.url}/runs/{done}")
            page.screenshot(
                path=FOLDER / "run.png", clip={"x": 0, "y": 0, "width": 960, "height": 1000}, full_page=True
            )
            phone = new_context(browser, viewport={"width": 390, "height": 780}, scheme="dark")
            page = log_in(phone, server, "olga")
            page.goto(f"{server.url}/approvals/{approval['id']}")
            page.screenshot(path=FOLDER / "card-phone.png")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
