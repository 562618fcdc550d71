"""Headless Chromium on Airflow's pages, and the pictures that are kept of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "stack-screenshots"
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Browser, address: str, last: str) -> Iterator[Page]:
    """A page of a person who is not signed in; relative addresses are Airflow's. Its last look is kept as `last`."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, base_url=address)
    page = context.new_page()
    page.set_default_timeout(60_000)
    try:
        yield page
    finally:
        page.screenshot(path=SCREENSHOTS / f"{last}.png")
        context.close()


def sign_in(page: Page, user: str, password: str) -> None:
    page.goto("/auth/login")
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", password)
    page.click("[type=submit]")
    page.wait_for_url(lambda url: "/auth/login" not in url)


def snap(page: Page, name: str) -> None:
    page.wait_for_timeout(1500)  # charts and icons draw themselves after the text is there
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
