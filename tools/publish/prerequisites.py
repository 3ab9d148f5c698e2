"""Which notebook builds on which, read from the notebooks' own links, and a map of it."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import nbformat

from publish.notebook_page import title_of

#: Pixels from line to line, of the widest arc, and for the names.
_ROW, _WIDEST, _NAMES = 30, 200, 400


def named(path: Path, stems: Sequence[str]) -> frozenset[str]:
    """Return the notebooks that a notebook's prose links to or names as "notebook 04", without its last cell.

    The last cell, *Sources*, leads on to the next notebook and names papers.
    """
    by_number = {stem[:2]: stem for stem in stems}
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells[:-1] if cell.cell_type == "markdown")
    linked = re.findall(r"\]\(([\w-]+)\.ipynb(?:#[^)]*)?\)", text)
    numbered = [number for numbers in re.findall(r"notebooks? (\d\d(?:(?:,| to| and) \d\d)*)", text, re.IGNORECASE)
                for number in re.findall(r"\d\d", numbers)]  # fmt: skip
    return frozenset({*linked, *(by_number[number] for number in numbered if number in by_number)} & set(stems))


def needs(paths: Sequence[Path]) -> dict[str, tuple[str, ...]]:
    """Return for each notebook the earlier ones that it names, in order; the start page is none of them."""
    stems = [path.stem for path in paths if not path.stem.startswith("00")]
    found = {path.stem: named(path, stems) for path in paths if path.stem in stems}
    return {stem: tuple(sorted(other for other in others if other < stem)) for stem, others in found.items()}


def direct(of: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Leave out what a notebook needs by way of another that it needs, so that a map has few lines."""
    return {
        stem: tuple(one for one in ones if not any(one in _all(of, other) for other in ones))
        for stem, ones in of.items()
    }


def svg(paths: Sequence[Path]) -> str:
    """Return the map: the notebooks below one another, and an arc from each down to one that builds on it."""
    of = direct(needs(paths))
    titles = {path.stem: title_of(nbformat.read(path, as_version=4)) for path in paths}
    y = {stem: _ROW * (row + 0.5) + 8 for row, stem in enumerate(of)}
    farthest = max(y[stem] - y[other] for stem, others in of.items() for other in others)
    x, height = _WIDEST + 16, _ROW * len(of) + 16
    arcs, told = [], []
    for stem, others in of.items():
        for other in others:
            # Half an ellipse, the wider the further the two are apart, that ends with an arrow at the later one.
            out = 18 + (_WIDEST - 18) * (y[stem] - y[other]) / farthest
            arcs.append(
                f"M{x} {y[other]:g}A{out:.0f} {(y[stem] - y[other]) / 2:g} 0 0 0 {x} {y[stem]:g}l-7 -4m7 4l-7 4"
            )
        if others:
            told.append(f"{stem[:2]} builds on {', '.join(other[:2] for other in others)}")
    lines = "\n".join(f'<path d="{arc}"/>' for arc in arcs)
    names = "\n".join(f'<text x="{x + 8}" y="{y[stem] + 5:g}">{escape(titles[stem])}</text>' for stem in of)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {x + _NAMES} {height}" width="{x + _NAMES}" '
        f'height="{height}" role="img" aria-label="Which notebook builds on which: {escape("; ".join(told))}.">\n'
        f'<rect width="{x + _NAMES}" height="{height}" fill="#ffffff"/>\n'
        f'<g fill="none" stroke="#004488" stroke-width="1.5">\n{lines}\n</g>\n'
        f'<g fill="#1d2430" font-family="sans-serif" font-size="14">\n{names}\n</g>\n</svg>\n'
    )


def needs_in_markdown(paths: Sequence[Path]) -> str:
    """Return the list of what each notebook needs, and what it names by way of others."""
    every, near = needs(paths), direct(needs(paths))
    titles = {path.stem: title_of(nbformat.read(path, as_version=4)) for path in paths}
    lines = ["| Notebook | builds on | and so on |", "|---|---|---|"]
    for stem in every:
        far = [one for one in _all(every, stem) if one not in near[stem]]
        shown = (", ".join(one[:2] for one in some) or "–" for some in (near[stem], far))
        lines.append(f"| {titles[stem]} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _all(of: Mapping[str, Sequence[str]], stem: str) -> list[str]:
    return sorted({other for one in of[stem] for other in (one, *_all(of, one))})
