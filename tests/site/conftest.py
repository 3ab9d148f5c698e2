"""Pages of the site, each built once, and a page of the browser that has no network."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from make_site import build
from playwright.sync_api import Page, expect
from publish.index import index
from publish.notebook_page import links
from publish.recorded_panel import Limits

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks" / "en").glob("*.ipynb"))
LIMITS = Limits(values=5)


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Callable[[str], Path]:
    """Return the file of a page by its stem; it is built when it is first asked for."""
    out, pages = tmp_path_factory.mktemp("site"), links(NOTEBOOKS)

    def built(stem: str) -> Path:
        file = out / f"{stem}.html"
        if stem == "index":
            file.write_text(index(NOTEBOOKS), "utf-8")
        else:
            build(next(path for path in NOTEBOOKS if path.stem == stem), pages, out, LIMITS)
        return file

    return cache(built)


@pytest.fixture
def page(chromium) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    wrong: list[str] = []

    def only_files(route):
        if urlsplit(route.request.url).scheme not in ("file", "data", "blob"):
            wrong.append(f"asks for {route.request.url}")
            route.abort()
        else:
            route.continue_()

    page.route("**/*", only_files)
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert wrong == []


@pytest.fixture
def open_page(built, page):
    """Open a page by its stem, and wait until its explorers are alive."""

    def open_page(stem: str) -> Page:
        page.goto(built(stem).as_uri())
        for explorer in page.locator(".explorer").all():
            explorer.scroll_into_view_if_needed()
            expect(explorer).to_have_attribute("data-ready", "", timeout=20_000)
        return page

    return open_page
