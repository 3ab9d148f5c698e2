"""Build the static site: every notebook as a page, with its explorers alive and nothing fetched from elsewhere.

    python tools/make_site.py [--out FOLDER] [--one-file] [--values N] [--frames N] [--jobs N] [--language CODE]
                              [notebook ...]

A page's styles, font and scripts are files beside it, so that the site works under the policy of `publish.folder`.
With --one-file each page is a single file that has everything in it, and which that policy would not let work.

Without names all notebooks of the language are built, and index.html and the pages for a class.  A language without
notebooks of its own gets those of notebooks/en, with the words of pages, explorers and sheets in the language.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import notebooks
from publish.folder import apart, write
from publish.index import index
from publish.notebook_page import MOST_BYTES, Link, links, page
from publish.recorded_panel import Limits
from publish.teaching import pages as pages_for_a_class

from transformer_parts.language import available

PROJECT = Path(__file__).resolve().parents[1]


def build(
    path: Path,
    pages: list[Link],
    out: Path,
    limits: Limits,
    language: str | None = None,
    one_file: bool = False,
    run: str = "",
) -> str:
    """Write the page of a notebook and return a line that says what is in it.

    Raises
    ------
    ValueError
        If the page is larger than a page may be.
    """
    began = time.perf_counter()
    html, explorers = page(path, pages, limits, language=language, run=run)
    size = len(html.encode())
    if size > MOST_BYTES:
        raise ValueError(f"{path.name}: got a page of {size:,} bytes, want at most {MOST_BYTES:,}")
    write({f"{path.stem}.html": html.encode()} if one_file else apart(html, path.stem), out)
    frames = sum(explorer.frames for explorer in explorers)
    seconds = time.perf_counter() - began
    return f"{path.stem}.html  {size / 1e6:.1f} MB, {len(explorers)} explorers, {frames} frames, {seconds:.0f} s"


def build_all(
    paths: Sequence[Path],
    pages: list[Link],
    out: Path,
    limits: Limits,
    jobs: int,
    language: str,
    one_file: bool,
    run: str,
) -> Iterator[str]:
    """Write the pages of notebooks, and yield the line about each when it is written."""
    # The longest first, so that none is left alone at the end.
    by_size = sorted(paths, key=lambda path: -path.stat().st_size)
    if jobs == 1:
        yield from (build(path, pages, out, limits, language, one_file, run) for path in by_size)
        return
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(build, path, pages, out, limits, language, one_file, run) for path in by_size]
        for future in as_completed(running):
            yield future.result()


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the pages named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PROJECT / "site")
    parser.add_argument("--one-file", action="store_true", help="a single file for each page, without index.html")
    parser.add_argument("--values", type=int, default=Limits.values, help="most values of one control")
    parser.add_argument("--frames", type=int, default=Limits.frames, help="about so many frames of one explorer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="notebooks built at the same time")
    parser.add_argument("--run", default="", metavar="ADDRESS", help="where a notebook can be run; {path} is its path")
    parser.add_argument("--language", choices=available(), default="en", help="language of the site's words")
    parser.add_argument("notebooks", nargs="*", type=Path)
    arguments = parser.parse_args(arguments)
    found = notebooks.notebooks()
    own = [path for path in found if path.parent.name == arguments.language]
    every = own or [path for path in found if path.parent.name == "en"]
    pages, limits = links(every), Limits(arguments.values, arguments.frames)
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    chosen = [path.resolve() for path in arguments.notebooks] or every
    options = (pages, arguments.out, limits, arguments.jobs, arguments.language, arguments.one_file, arguments.run)
    for done, line in enumerate(build_all(chosen, *options), 1):
        print(f"[{done}/{len(chosen)}] {line}", flush=True)
    if arguments.one_file:
        return
    english = {path.stem: path for path in found if path.parent.name == "en"}
    for stem, html in pages_for_a_class(english, language=arguments.language):
        write(apart(html, stem), arguments.out)
    write(apart(index(every, limits, language=arguments.language), "index"), arguments.out)
    print(f"{arguments.out / 'index.html'}  {time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    sys.exit(main())
