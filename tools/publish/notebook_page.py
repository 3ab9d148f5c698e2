"""One notebook as one page: prose, code, stored outputs, and its explorers alive."""

import base64
import io
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from html import escape, unescape
from pathlib import Path

import nbformat
from fontTools import subset
from fontTools.ttLib import TTFont
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from markupsafe import escape as escaped
from notebooks import ANSWERS, shown

from publish.interview_sheet import sheet
from publish.prediction import Asked, asked
from publish.prose import Prose, code, picture
from publish.recorded_panel import Limits, RecordedPanel
from transformer_parts import language as languages
from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.front_end import PAGE, joined
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.prediction import Prediction
from transformer_parts.language import PSEUDO, Language, Message

PROJECT = Path(__file__).resolve().parents[2]
EXPLORERS = PROJECT / "lib" / "transformer_parts" / "explore" / "style.css"
_HERE = Path(__file__).parent
#: Most bytes of a page.
MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class Link:
    """A page of the site: the file's name without its ending, and the title."""

    stem: str
    title: str


def environment(language: Language) -> Environment:
    """Return the environment of the templates; what they print is escaped unless it is said to be HTML.

    Their words are in the language: ``_("template", name=value)`` of a template of words, ``text(message)`` of a
    message of the library.
    """

    def translated(template: str, **values: object) -> Markup:
        # A value may be HTML, so values are put in after the words are escaped.
        marks = {name: f"\ue000{name}\ue001" for name in values}
        words = escaped(language.text(Message(template, marks)))
        for name, value in values.items():
            words = words.replace(marks[name], escaped(value))
        return words

    loader = FileSystemLoader(_HERE / "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.globals |= {
        "_": translated,
        "text": language.text,
        # A page of a notebook says otherwise.
        "links": (),
        "run": "",
        "stem": "",
        "lang": "en-x-pseudo" if language.name == PSEUDO else language.name,
    }
    return made


def title_of(notebook: nbformat.NotebookNode) -> str:
    """Return the title of a notebook, its first heading."""
    return re.match(r"# (.+)", notebook.cells[0].source)[1]


def links(paths: Sequence[Path]) -> list[Link]:
    """Return the pages of notebooks, in order."""
    return [Link(path.stem, title_of(nbformat.read(path, as_version=4))) for path in paths]


def page(
    path: Path,
    links: Sequence[Link],
    limits: Limits | None = None,
    *,
    language: str | Language | None = None,
    run: str = "",
) -> tuple[str, list[RecordedPanel]]:
    """Return the page of a notebook, and the explorers in it.

    Parameters
    ----------
    path : Path
        The notebook.
    links : sequence of Link
        The pages of the site, in order; the notebook is one of them.
    limits : Limits, optional
        How much of each explorer is kept.
    language : str or Language, optional
        Language of the page's own words, its explorers and its sheets.
    run : str, optional
        Address at which the notebook can be run, with ``{path}`` for its path; without one the page has no such link.
    """
    language = languages.language(language)
    notebook = nbformat.read(path, as_version=4)
    kinds = [found.kind for cell in notebook.cells if (found := shown(cell))]
    prose = Prose(path.parent, {Path(kind.still).name for kind in kinds if kind in (*PANELS, *LIVE_RUNS)})
    titles = {link.stem: link.title for link in links}
    blocks, explorers, predictions = [], {}, asked(notebook)
    for cell in notebook.cells:
        name, kind = shown(cell) or ("", None)
        if cell.cell_type == "markdown":
            blocks.append({"kind": "prose", "html": prose.html(cell.source)})
        elif kind in PANELS:
            explorers[name] = RecordedPanel(kind(language=language), limits)
            blocks.append({"kind": "explorer", "code": code(cell.source), **explorer_block(name, explorers[name])})
        elif kind in LIVE_RUNS:
            blocks.append({"kind": "live", "code": code(cell.source), **_live(kind(language=language))})
        elif kind is Prediction:
            blocks.append({"kind": "prediction", "code": code(cell.source), **_prediction(predictions[cell.id], prose)})
        elif kind is not None:
            blocks.append({"kind": "sheet", "code": code(cell.source), **sheet(kind.__name__, titles, language)})
        else:
            outputs = [_output(output, prose) for output in cell.outputs]
            folded = ANSWERS in cell.metadata.get("tags", [])
            is_lesson = re.search(r"^def ", cell.source, re.MULTILINE)
            code_block = {"code": code(cell.source), "outputs": outputs, "folded": folded, "open": bool(is_lesson)}
            blocks.append({"kind": "code"} | code_block)
    at = [link.stem for link in links].index(path.stem)
    html = (
        environment(language)
        .get_template("page.html")
        .render(
            title=title_of(notebook),
            stem=path.stem,
            links=links,
            run=run.format(path=path.resolve().relative_to(PROJECT).as_posix()) if run else "",
            blocks=blocks,
            headings=[heading for heading in prose.headings if heading[0] == 2],
            previous=links[at - 1] if at else None,
            following=links[at + 1] if at + 1 < len(links) else None,
            packs={name: explorer.pack.decode() for name, explorer in explorers.items()},
            scripts=scripts({block["kind"] for block in blocks}),
            style=style(),
            font=None,
        )
    )
    return with_font(html), list(explorers.values())


def style() -> str:
    """Return the style of all pages: that of explorers in notebooks, and the pages' own."""
    return EXPLORERS.read_text("utf-8") + (_HERE / "templates" / "style.css").read_text("utf-8")


def with_font(html: str) -> str:
    """Return the page with the characters of its formulas as a font of its own."""
    text = "".join(re.findall(r"<math.*?</math>", html, re.DOTALL))
    letters = frozenset(unescape(re.sub("<[^>]*>", "", text)))
    # The sign of a root is no text.
    letters |= {"√"} if re.search("<m(sqrt|root)", text) else set()
    return html.replace("/*font*/", f"url(data:font/woff;base64,{_font(letters)})") if letters else html


@cache
def _font(letters: frozenset[str]) -> str:
    font = TTFont(_HERE / "fonts" / "formulas.woff")
    # Letters of variables are taken from the plane of italics.
    wanted = {ord(letter) for letter in letters}
    wanted |= {0x1D434 + ord(c) - ord("A") for c in letters if "A" <= c <= "Z"}
    wanted |= {0x1D44E + ord(c) - ord("a") for c in letters if "a" <= c <= "z"} | {0x210E}
    wanted |= {0x1D6FC + ord(c) - ord("α") for c in letters if "α" <= c <= "ω"} | {0x1D716, 0x1D717, 0x1D719}
    kept = subset.Options(layout_features=["*"], hinting=False, notdef_outline=True)
    subsetter = subset.Subsetter(kept)
    subsetter.populate(unicodes=wanted)
    subsetter.subset(font)
    font.flavor = "woff"
    buffer = io.BytesIO()
    font.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode()


def explorer_block(name: str, explorer: RecordedPanel) -> dict:
    """Return what the template says of an explorer."""
    panel = explorer.panel
    panel.reset()
    return {
        "name": name, "alt": panel.translate(panel.alt), "size": panel.view.size,
        "still": picture(PROJECT / panel.still), "table": panel.numbers(panel.shown, announced=False),
        "thinned": explorer.thinned,
    }  # fmt: skip


def scripts(kinds: Set[str]) -> dict[str, str]:
    """Return the scripts that a page with these kinds of blocks needs, by their names."""
    needed = {"explorer": ("page", PAGE), "sheet": ("sheets", ("sheets.js",)),
              "prediction": ("predictions", ("predictions.js",))}  # fmt: skip
    return {name: joined(*modules) for kind, (name, modules) in needed.items() if kind in kinds}


def _live(run: LiveRun) -> dict:
    return {
        "alt": run.translate(run.alt), "size": run.view.size, "still": picture(PROJECT / run.still),
        "controls": [control.description for control in run.controls.values()],
    }  # fmt: skip


def _prediction(prediction: Asked, prose: Prose) -> dict:
    question = re.sub(r"</?p>\n?", "", prose.html(prediction.question))
    return prediction._asdict() | {"question": question}


def _output(output: nbformat.NotebookNode, prose: Prose) -> str:
    """Return a stored output as HTML: the richest of its texts."""
    if output.output_type == "stream":
        return f'<pre class="output" tabindex="0">{escape(output.text)}</pre>'
    data = output.data
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'
    if "text/markdown" in data:
        return f'<div class="output source">{prose.html(data["text/markdown"])}</div>'
    return f'<pre class="output" tabindex="0">{escape(data["text/plain"])}</pre>'
