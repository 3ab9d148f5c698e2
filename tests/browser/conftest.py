"""A JupyterLab server and a Chromium for the session, and the notebooks with explorers in them."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import lab
import pytest
from explorer_page import ExplorerOnPage, Log, Place, places
from ipywidgets import Widget
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect
from sampling import Sample

from transformer_parts.explore.panel import Panel

PROJECT = Path(__file__).resolve().parents[2]
WIDE = {"width": 1440, "height": 1000}
PLACES = places()
# A busy machine is not an error.
expect.set_options(timeout=20_000)
NOTEBOOKS = list(dict.fromkeys(place.notebook for place in PLACES))
# Opening a notebook takes longer than most tests.  So the tests of one notebook follow one another on one page, and a
# run opens the first notebook, so many others, and those that tests of one thing are about.
OPENED = 4
# The first asks for a page that has not run, and the last leaves one whose kernel is gone.
ORDER = ("test_opening", "test_running", "test_explorers", "test_interview", "test_live_run", "test_kernel_gone")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `of_opened_notebooks` and is of another; bring together what is of one notebook."""
    sample = Sample(config.option.sample_seed, config.option.everything)
    opened = {*NOTEBOOKS[:1], *sample.of(NOTEBOOKS[1:], OPENED)}
    dropped = set()
    for item in items:
        if item.get_closest_marker("browser") is None:
            continue
        given = item.callspec.params if hasattr(item, "callspec") else {}
        notebook = given["place"].notebook if "place" in given else given.get("notebook")
        notebook = notebook or getattr(item.module, "NOTEBOOK", "")
        item.add_marker(pytest.mark.xdist_group(Path(notebook).stem or item.path.parent.name))
        if item.get_closest_marker("of_opened_notebooks") and notebook not in opened:
            dropped.add(item)
        if "trusted" in given and given["trusted"] != sample.digest(notebook)[0] % 2 and not sample.everything:
            dropped.add(item)
    config.hook.pytest_deselected(items=sorted(dropped, key=items.index))
    items[:] = [item for item in items if item not in dropped]
    items.sort(key=_place_of)


def _place_of(item: pytest.Item) -> tuple:
    """Return the key by which items are in order: those of one notebook side by side, others as they were."""
    group = item.get_closest_marker("xdist_group")
    if group is None or item.path.stem not in ORDER:
        return ("", 0)
    return (group.args[0], ORDER.index(item.path.stem))


@dataclass(frozen=True)
class Site:
    """A running JupyterLab over a copy of the notebooks and figures."""

    address: str
    root: Path
    log: Path

    def restore(self, notebook: str) -> None:
        """Put the committed notebook back, in place of one that JupyterLab saved with its outputs."""
        shutil.copy(PROJECT / notebook, self.root / notebook)

    def trust(self, notebook: str) -> None:
        """Sign a notebook as ``jupyter trust`` does, for this server."""
        command = [sys.executable, "-m", "jupyter", "trust", str(self.root / notebook)]
        subprocess.run(command, check=True, env=lab.environment(self.log), capture_output=True)


@pytest.fixture(scope="session")
def site(chromium, tmp_path_factory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "root"
    for part in ("notebooks", "figures"):
        shutil.copytree(PROJECT / part, root / part, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    with lab.server(root, folder / "server.log") as address:
        yield Site(address, root, folder / "server.log")


@pytest.fixture
def new_page(chromium) -> Iterator[Page]:
    context = chromium.new_context(viewport=WIDE)
    yield context.new_page()
    context.close()


class Desk:
    """The page of one notebook, opened and, when asked for, run; another notebook takes its place."""

    def __init__(self, browser: Browser, site: Site):
        self.browser, self.site = browser, site
        self.context: BrowserContext | None = None
        self.notebook, self.has_run = "", False
        self.elsewhere: list[str] = []

    def _note(self, request: Request) -> None:
        """Note a request to another host than the server's."""
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != urlsplit(self.site.address).netloc:
            self.elsewhere.append(request.url)

    def open(self, notebook: str, *, trusted: bool = False) -> tuple[Page, Log]:
        """Return the page of a notebook as it is when nothing has run."""
        self.clear()
        self.site.restore(notebook)
        if trusted:
            self.site.trust(notebook)
        self.context = self.browser.new_context(viewport=WIDE)
        page = self.context.new_page()
        self.opened = page, Log(page)
        page.on("request", self._note)
        lab.open_notebook(page, self.site.address, notebook)
        self.notebook = notebook
        return self.opened

    def page(self, notebook: str) -> tuple[Page, Log]:
        """Return the page of a notebook that has been run as a whole."""
        if notebook != self.notebook:
            self.open(notebook)
        if not self.has_run:
            lab.run_all(self.opened[0])
            self.has_run = True
        return self.opened

    def clear(self) -> None:
        if self.context is not None:
            lab.shut_down_kernel(self.opened[0])
            self.context.close()
        self.context, self.notebook, self.has_run = None, "", False


@pytest.fixture(scope="session")
def desk(chromium, site) -> Iterator[Desk]:
    desk = Desk(chromium, site)
    yield desk
    desk.clear()
    assert desk.elsewhere == [], "something leaves the machine"


@pytest.fixture(scope="session", params=NOTEBOOKS, ids=lambda path: Path(path).stem)
def notebook(request) -> str:
    return request.param


@pytest.fixture(scope="session", params=PLACES, ids=str)
def place(request) -> Place:
    return request.param


@pytest.fixture(scope="session")
def twin(place) -> Iterator[Panel]:
    """A panel like that of the page, for all tests on it; its widgets are let go when the next one comes."""
    panel = place.panel_class()
    yield panel
    Widget.close_all()


@pytest.fixture
def explorer(desk, place, twin) -> Iterator[ExplorerOnPage]:
    """The panel at rest in its first state, in view on a wide, light page; the page must not complain meanwhile."""
    page, log = desk.page(place.notebook)
    page.set_viewport_size(WIDE)
    lab.set_theme(page, "JupyterLab Light")
    lab.kernel(page, f"{place.name}.reset()")
    twin.reset()
    explorer = ExplorerOnPage(page, place, twin)
    explorer.settle()
    log.clear()
    yield explorer
    assert log == []
