"""Debian's Chromium, driven by Playwright, logged in to a console."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Literal, cast

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from tests.integration.console_server import Server

CHROMIUM: Final = "/usr/bin/chromium"
WAIT_MS: Final = 60_000
"""How long anything on a page may take: a busy machine is no fault."""

DESKTOP: Final = ViewportSize(width=1180, height=900)
PHONE: Final = ViewportSize(width=390, height=844)


@contextmanager
def open_browser() -> Generator[Browser]:
    """Give a browser."""
    with sync_playwright() as playwright:
        expect.set_options(timeout=WAIT_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def new_context(
    browser: Browser,
    *,
    viewport: ViewportSize = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
    scripts: bool = True,
    **more: Any,
) -> BrowserContext:
    """Give a fresh profile."""
    context = browser.new_context(
        viewport=viewport, color_scheme=scheme, java_script_enabled=scripts, locale="en-GB", **more
    )
    context.set_default_timeout(WAIT_MS)
    return context


def log_in(context: BrowserContext, server: Server, who: str) -> Page:
    """Log somebody in, and return the inbox."""
    page = context.new_page()
    page.goto(server.url + "/")
    page.get_by_label("Token").fill(server.tokens[who])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(server.url + "/")
    return page


def serious_findings(page: Page) -> list[str]:
    """Return what axe finds serious or critical."""
    answer = cast("Any", Axe()).run(page).response
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in answer["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def tab_to(page: Page, reached: str) -> None:
    """Press Tab until something has focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(f"Boolean({reached})"):
            return
    raise AssertionError(f"Tab never reaches {reached}")
