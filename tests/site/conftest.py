"""Pages of the site, each built once, and a page of the browser that has no network."""

from collections.abc import Callable, Iterator
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from make_site import build
from playwright.sync_api import Page, expect
from publish.folder import POLICY, apart, write
from publish.index import index
from publish.notebook_page import links
from publish.recorded_panel import Limits
from publish.teaching import pages as pages_for_a_class

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks" / "en").glob("*.ipynb"))
LIMITS = Limits(values=5)


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Callable[[str], Path]:
    """Return the file of a page by its stem; it is built when it is first asked for."""
    out, pages = tmp_path_factory.mktemp("site"), links(NOTEBOOKS)

    def built(stem: str) -> Path:
        file = out / f"{stem}.html"
        if stem == "index":
            write(apart(index(NOTEBOOKS), stem), out)
        elif stem in {path.stem for path in NOTEBOOKS}:
            build(next(path for path in NOTEBOOKS if path.stem == stem), pages, out, LIMITS)
        elif not file.exists():
            for name, html in pages_for_a_class({path.stem: path for path in NOTEBOOKS}):
                write(apart(html, name), out)
        return file

    return cache(built)


#: The server of the site, which is nowhere: what it would send comes from the folder.
HOST = "site.invalid"


@pytest.fixture
def page(chromium, built) -> Iterator[Page]:
    """A page of a browser that has no network but the site's server, which sends the strict policy."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    wrong: list[str] = []

    def only_files(route):
        address = urlsplit(route.request.url)
        if address.hostname == HOST:
            file = built("04_rope").parent / address.path.lstrip("/")
            kind = guess_type(file.name)[0] or "application/octet-stream"
            headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
            route.fulfill(path=file, headers=headers | {"Content-Type": f"{kind}; charset=utf-8"})
        elif address.scheme in ("file", "data", "blob"):
            route.continue_()
        else:
            wrong.append(f"asks for {route.request.url}")
            route.abort()

    page.route("**/*", only_files)
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert wrong == []


@pytest.fixture
def open_page(built, page):
    """Open a page of the site by its stem, or a page from its file, and wait until its explorers are alive."""

    def open_page(stem: str | Path) -> Page:
        page.goto(f"http://{HOST}/{built(stem).name}" if isinstance(stem, str) else stem.as_uri())
        for explorer in page.locator(".explorer").all():
            explorer.scroll_into_view_if_needed()
            expect(explorer).to_have_attribute("data-ready", "", timeout=20_000)
        return page

    return open_page
