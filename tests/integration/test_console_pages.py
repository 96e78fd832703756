"""The operator's day in a real browser: what appears, what can be pressed, and what becomes of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.integration.console_browser import (
    DESKTOP,
    PHONE,
    log_in,
    new_context,
    open_browser,
    serious_findings,
    tab_to,
)
from tests.integration.console_server import Server, make_server, wait_until

ROOT: Final = Path(__file__).parents[2]
ARTIFACTS: Final = ROOT / "artifacts" / "console"

pytestmark = pytest.mark.browser

MAIL = 'print(mail.send(to="ada@example.com", subject="Hello", body="one\\ntwo"))'
BATCH = """
import asyncio
found = await crm.find(name="Ada")
results = await asyncio.gather(
    *[mail.send(to=found["email"], subject=s) for s in ("first", "second", "third")], return_exceptions=True
)
print([type(each).__name__ for each in results])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = make_server(tmp_path_factory.mktemp("pages"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """Give the inbox of olga; whatever a script on it complains of fails the test."""
    context = new_context(browser)
    page = log_in(context, server, "olga")
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    yield page
    context.close()
    assert complaints == []


def test_a_call_appears_live_is_edited_approved_and_runs(page: Page, server: Server) -> None:
    page.goto(server.url)
    before = page.locator("#inbox > li").count()
    run = server.submit(MAIL)["id"]
    button = page.get_by_role("link", name=re.compile(r"^[0-9]+ new$"))
    expect(button).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\([0-9]+\) Inbox"))
    assert page.locator("#inbox > li").count() == before  # nothing moved under the pointer
    button.click()
    (approval,) = server.pending(1, run=run)
    page.locator(f"#{approval['id']} a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("mail.send")
    assert page.evaluate("document.activeElement === document.body")  # nothing has focus
    expect(page.locator("fieldset").first).to_contain_text(
        "any call of mail.send with any arguments, at most as many more as stand below in this run"
    )
    page.get_by_text("Approve with other arguments").click()
    page.get_by_label("subject").fill("Hello again")
    page.get_by_role("button", name="Show the difference").click()
    expect(page.locator(".ins")).to_have_text('"Hello again"')
    expect(page.locator(".del")).to_have_text('"Hello"')
    page.get_by_role("button", name="Approve with changes").click()
    expect(page.locator(".facts .state").first).to_have_text(re.compile("approved"))
    assert server.finished(run)["result"]["output"] == "sent\n"
    assert "ada@example.com Hello again" in (server.folder / "sent.txt").read_text("utf-8")


def test_a_batch_shows_every_call_in_full_and_decides_each(page: Page, server: Server) -> None:
    run = server.submit(BATCH)["id"]
    items = sorted(server.pending(3, run=run), key=lambda each: each["seq"])
    page.goto(f"{server.url}/batches/{items[0]['batch']}")
    for item, subject in zip(items, ("first", "second", "third"), strict=True):
        expect(page.locator(f"#{item['id']} .arguments")).to_contain_text(subject)
        expect(page.locator(f"#{item['id']}")).to_contain_text(
            "to was seen in the result of call 1 (crm.find)"
        )
    page.locator(f"#{items[0]['id']}").get_by_label("Approve").check()
    page.locator(f"#{items[2]['id']}").get_by_label("Reject").check()
    page.locator(f"#{items[2]['id']}").get_by_label("Reason").fill("not the third")
    page.get_by_role("button", name="Send these decisions").click()
    expect(page.get_by_role("status").filter(has_text="decisions sent")).to_contain_text("2 decisions sent")
    expect(page.locator(f"#{items[1]['id']} .state").first).to_have_text("pending")
    page.locator(f"#{items[1]['id']}").get_by_label("Approve").check()
    page.get_by_role("button", name="Send these decisions").click()
    assert server.finished(run)["result"]["output"] == "['str', 'str', 'ToolDenied']\n"


def test_a_reason_reaches_the_script(page: Page, server: Server) -> None:
    script = 'try:\n    mail.send(to="a@b.de", subject="x")\nexcept ToolDenied as error:\n    print(error)'
    run = server.submit(script)["id"]
    (approval,) = server.pending(1, run=run)
    page.goto(f"{server.url}/approvals/{approval['id']}")
    page.get_by_label("Reason", exact=False).first.fill("wait until Monday")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.locator(".facts .state").first).to_have_text("rejected")
    assert "wait until Monday" in server.finished(run)["result"]["output"]


def test_a_card_that_changes_elsewhere_says_so_and_takes_no_stale_decision(
    page: Page, server: Server
) -> None:
    run = server.submit(MAIL)["id"]
    (approval,) = server.pending(1, run=run)
    page.goto(f"{server.url}/approvals/{approval['id']}")
    assert server.decide("otto", approval, "reject").status_code == 200
    expect(page.get_by_text("This call has changed since you opened the page.")).to_be_visible()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was written")
    server.finished(run)


def test_four_eyes_hold_on_the_page(page: Page, server: Server) -> None:
    server.add_token("olga", "run", key="olga-run")
    run = server.submit(MAIL, "olga-run")["id"]
    (approval,) = server.pending(1, run=run)
    page.goto(f"{server.url}/approvals/{approval['id']}")
    expect(page.get_by_text("Others decide about this call")).to_be_visible()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("may not approve a call of an own run")
    assert server.decide("otto", approval, "approve").status_code == 200
    server.finished(run)


def test_enter_in_a_field_decides_nothing(page: Page, server: Server) -> None:
    run = server.submit(MAIL)["id"]
    (approval,) = server.pending(1, run=run)
    page.goto(f"{server.url}/approvals/{approval['id']}")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    page.get_by_label("At most this many more").press("Enter")
    page.get_by_label("This one call").press("Enter")
    # What a key press sends is on its way before the next but one picture.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert "POST" not in sent
    assert server.api("olga", "GET", f"/v1/approvals/{approval['id']}").json()["state"] == "pending"
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_the_keyboard_alone_is_enough(page: Page, server: Server) -> None:
    run = server.submit(MAIL)["id"]
    (approval,) = server.pending(1, run=run)
    page.goto(server.url)
    tab_to(page, f'document.activeElement.closest("#{approval["id"]}")')
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/approvals/{approval['id']}")
    tab_to(page, 'document.activeElement.value === "approve"')
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Space")
    expect(page.locator(".facts .state").first).to_have_text(re.compile("approved"))
    server.finished(run)


def test_a_run_page_follows_its_run(page: Page, server: Server) -> None:
    run = server.submit(f"crm.find(name='Ada')\n{MAIL}")["id"]
    (approval,) = server.pending(1, run=run)
    page.goto(f"{server.url}/runs/{run}")
    expect(page.get_by_text("1 call waits for a decision")).to_be_visible()
    server.decide("olga", approval, "approve")
    expect(page.locator("#live .facts .state").first).to_have_text("finished well")
    expect(page.locator(".output").first).to_have_text("sent")
    expect(page.locator("svg.chart").first).to_be_visible()
    page.locator("details.call summary").first.click()
    page.get_by_role("link", name="Show it in full").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text("x" * 2000)
    page.go_back()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the journal").click()
    assert download.value.suggested_filename == f"{run}.jsonl"


def test_everything_works_without_scripts(browser: Browser, server: Server) -> None:
    context = new_context(browser, scripts=False)
    page = log_in(context, server, "olga")
    run = server.submit(MAIL)["id"]
    (approval,) = server.pending(1, run=run)
    page.goto(server.url)
    page.locator(f"#{approval['id']} a").click()
    page.get_by_text("Approve with other arguments").click()
    page.get_by_label("subject").fill("No scripts")
    page.get_by_role("button", name="Show the difference").click()
    page.get_by_role("button", name="Approve with changes").click()
    server.finished(run)
    page.goto(f"{server.url}/runs/{run}")
    expect(page.locator(".output").first).to_have_text("sent")
    batch = server.submit(BATCH)["id"]
    items = server.pending(3, run=batch)
    page.goto(f"{server.url}/batches/{items[0]['batch']}")
    for item in items:
        page.locator(f"#{item['id']}").get_by_label("Approve").check()
    page.get_by_role("button", name="Send these decisions").click()
    server.finished(batch)
    page.goto(f"{server.url}/policy")
    page.get_by_label("Tool").select_option("mail.send")
    page.get_by_label("Arguments as JSON").fill('{"to": "a@b.de", "subject": "x"}')
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("status").first).to_contain_text("ask by mail")
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{server.url}/approvals/{approval['id']}")
    expect(page).to_have_url(re.compile("/login"))
    page.get_by_label("Token").fill(server.tokens["vera"])
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{server.url}/approvals/{approval['id']}")  # the link that was followed
    expect(page.get_by_role("heading", name="Decide", exact=True)).to_have_count(0)  # a viewer only looks
    context.close()


def test_an_expired_call_is_denied_and_shown_so(browser: Browser, tmp_path: Path) -> None:
    policy = (
        "version: 1\nrules:\n  - {id: mail, effect: ask, match: {tool: mail.send},"
        " approval: {expires_in: 2s}}\n"
    )
    server = make_server(tmp_path, policy=policy)
    try:
        run = server.submit(
            'try:\n    mail.send(to="a", subject="b")\nexcept ToolDenied as e:\n    print(e)'
        )["id"]
        (approval,) = server.pending(1, run=run)
        page = log_in(new_context(browser), server, "olga")
        page.goto(f"{server.url}/approvals/{approval['id']}")
        changed = page.get_by_text("This call has changed since you opened the page.")
        # On a busy machine the page may be opened when it is over already.
        expect(changed.or_(page.get_by_text("expired", exact=True)).first).to_be_visible()
        assert "nobody decided" in server.finished(run)["result"]["output"]
        page.reload()
        expect(page.locator(".facts .state").first).to_have_text("expired")
        expect(page.get_by_role("heading", name="Decide", exact=True)).to_have_count(0)
    finally:
        server.stop()


def test_a_restart_in_the_middle_and_an_unknown_outcome(browser: Browser, tmp_path: Path) -> None:
    server = make_server(tmp_path)
    try:
        page = log_in(new_context(browser), server, "olga")
        waiting = server.submit(MAIL)["id"]
        (approval,) = server.pending(1, run=waiting)
        job = server.submit('print(slow.job(name="nightly"))')["id"]
        wait_until((tmp_path / "job.started").exists, within_s=60)
        page.goto(f"{server.url}/approvals/{approval['id']}")
        server.stop(9)
        server.start()
        page.get_by_role("button", name="Approve", exact=True).click()  # a form from before the restart
        expect(page.locator(".facts .state").first).to_have_text(re.compile("approved"))
        assert server.finished(waiting)["result"]["output"] == "sent\n"
        wait_until(lambda: server.api("olga", "GET", "/v1/unknown").json()["unknown"], within_s=60)
        page.goto(f"{server.url}/unknown")
        expect(page.locator("section.card")).to_contain_text("slow.job")
        page.get_by_label("It happened: its result as JSON").fill('"settled"')
        page.get_by_role("button", name="It happened, with this result").click()
        expect(page.get_by_text("Every call that was started has an outcome.")).to_be_visible()
        assert server.finished(job)["result"]["output"] == "settled\n"
    finally:
        server.stop()


def pages_of(server: Server) -> dict[str, str]:
    """Return every page by a name, with something on each."""
    done = server.submit("crm.find(name='Ada')\nprint('hello')", wait=30)["id"]
    run = server.submit(BATCH)["id"]
    items = server.pending(3, run=run)
    single = server.submit("mail.send(to='ada@example.com', subject='Gr\\u00fc\\u00dfe \\u202e x')")["id"]
    (approval,) = server.pending(1, run=single)
    return {
        "login": "/login", "inbox": "/", "card": f"/approvals/{approval['id']}",
        "batch": f"/batches/{items[0]['batch']}", "runs": "/runs", "run": f"/runs/{done}",
        "run-waiting": f"/runs/{run}", "call": f"/runs/{done}/calls/1", "unknown": "/unknown",
        "history": "/history", "policy": "/policy", "tools": "/tools", "audit": "/audit",
        "missing": "/nowhere",
    }  # fmt: skip


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_every_page_is_accessible_and_fits(
    browser: Browser, server: Server, size: str, scheme: Literal["light", "dark"]
) -> None:
    """Axe finds nothing serious, nothing is wider than the screen; screenshots are kept to be looked at."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    viewport = DESKTOP if size == "desktop" else PHONE
    context = new_context(browser, viewport=viewport, scheme=scheme)
    page = log_in(context, server, "olga")
    stranger = new_context(browser, viewport=viewport, scheme=scheme).new_page()
    problems: list[str] = []
    targets = 0
    for name, path in pages_of(server).items():
        shown = stranger if name == "login" else page
        shown.goto(server.url + path)
        for summary in shown.locator("details > summary").all()[:6]:
            summary.click()
        problems += [f"{name}: {each}" for each in serious_findings(shown)]
        if shown.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            problems.append(f"{name} is wider than the screen")
        found, small = measure_targets(shown)
        targets += found
        problems += [f"{name}: {each} is too small for a thumb" for each in small]
        shown.screenshot(path=ARTIFACTS / f"{name}-{size}-{scheme}.png", full_page=True)
    context.close()
    assert problems == []
    assert targets > 100


def test_a_second_look_at_both_schemes(browser: Browser, server: Server) -> None:
    """The card, where decisions are made, is looked at in the two combinations left."""
    run = server.submit(MAIL)["id"]
    (approval,) = server.pending(1, run=run)
    for viewport, scheme in ((DESKTOP, "dark"), (PHONE, "light")):
        context = new_context(browser, viewport=viewport, scheme="dark" if scheme == "dark" else "light")
        page = log_in(context, server, "olga")
        page.goto(f"{server.url}/approvals/{approval['id']}")
        assert serious_findings(page) == []
        context.close()
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def measure_targets(page: Page) -> tuple[int, list[str]]:
    """Return how many targets can be pressed, and those below 24 px (WCAG 2.2, 2.5.8) in either direction.

    A box to tick is as large as its label.
    """
    answer = page.evaluate(
        """() => {
        const all = 'button, a, summary, select, textarea, .check, input:not([type=hidden])';
        const boxes = [...document.querySelectorAll(all)]
        .filter(e => e.checkVisibility() && !e.matches('.unseen, .skip, .check input'))
        .map(e => [(e.textContent || e.name).trim().slice(0, 30), e.getBoundingClientRect()])
        .filter(([, r]) => r.width);
        const small = boxes.filter(([, r]) => r.width < 24 || r.height < 24);
        return [boxes.length, small.map(([name]) => name)]; }"""
    )
    return int(answer[0]), [str(each) for each in answer[1]]


def test_the_browser_is_there() -> None:
    """A machine without Chromium has proven nothing about pages: `.ci/with-chromium` installs it."""
    assert os.access("/usr/bin/chromium", os.X_OK)
