"""Make the handouts: a page of A4 for each notebook, and one for all.

    python tools/make_handouts.py [--out FOLDER] [--map] [notebook ...]

Each is a single file, to be printed from a browser; where Chromium and Playwright are there, a PDF stands beside it.
Without names all handouts are made, and the map and the lists in docs/teaching are written again; --map does the
latter alone.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
import notebooks
from publish.handout import chosen, everything, handout
from publish.notebook_page import title_of
from publish.prerequisites import needs_in_markdown, svg

PROJECT = Path(__file__).resolve().parents[1]
TEACHING = PROJECT / "docs" / "teaching"


def pages(stems: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield name and HTML of the handouts of the notebooks named, or of all and the one for everything."""
    paths = {path.stem: path for path in notebooks.notebooks() if path.parent.name == "en"}
    for stem in stems or chosen():
        yield stem, handout(paths[stem], paths)
    if not stems:
        yield "everything", everything(paths)


def overview() -> dict[Path, str]:
    """Return the files that list the notebooks, the map and the README of docs/teaching, as they should be."""
    paths = [path for path in notebooks.notebooks() if path.parent.name == "en"]
    plans = "\n".join(
        f"- [{title_of(nbformat.read(path, as_version=4))}](plans/{path.stem}.md)"
        for path in paths
        if (TEACHING / "plans" / f"{path.stem}.md").exists()
    )
    readme = (TEACHING / "README.md").read_text("utf-8")
    for name, text in {"needs": needs_in_markdown(paths), "plans": plans}.items():
        marks = f"<!-- {name} -->", f"<!-- /{name} -->"
        readme = re.sub(
            f"{marks[0]}.*?{marks[1]}", lambda _, t=text, m=marks: f"{m[0]}\n{t}\n{m[1]}", readme, flags=re.DOTALL
        )
    return {TEACHING / "map.svg": svg(paths), TEACHING / "README.md": readme}


def alone(html: str) -> str:
    """Return a handout without the links to other pages of the site, which are not beside it."""
    return re.sub(r'<header class="site">.*?</header>', "", html, flags=re.DOTALL)


def print_all(files: Sequence[Path]) -> bool:
    """Print pages as PDF beside them; return whether there is a browser to do it."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return False
    with sync_playwright() as browsers:
        try:
            browser = browsers.chromium.launch(executable_path=_chromium())
        except Error:
            return False
        page = browser.new_page()
        for file in files:
            page.goto(file.resolve().as_uri())
            page.evaluate("() => document.fonts.ready")
            page.pdf(path=file.with_suffix(".pdf"), prefer_css_page_size=True, print_background=True)
        browser.close()
    return True


def _chromium() -> str | None:
    from shutil import which

    return next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the handouts named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PROJECT / "handouts")
    parser.add_argument("--map", action="store_true", help="write the map and the lists of docs/teaching alone")
    parser.add_argument("notebooks", nargs="*", type=Path)
    arguments = parser.parse_args(arguments)
    if not arguments.notebooks:
        for file, text in overview().items():
            file.write_text(text, "utf-8")
    if arguments.map:
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, html in pages([path.stem for path in arguments.notebooks]):
        files.append(arguments.out / f"{name}.html")
        files[-1].write_text(alone(html), "utf-8")
        print(files[-1])
    print(f"{len(files)} handouts" + (", each as PDF too" if print_all(files) else "; print them from a browser"))


if __name__ == "__main__":
    main()
