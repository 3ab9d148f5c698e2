"""Markdown of the notebooks as HTML: formulas as MathML, headings with anchors, links to the pages, code in colour."""

import base64
import io
import posixpath
import re
from html import escape, unescape
from pathlib import Path

from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from PIL import Image
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from publish.formulas import breakable, mathml

_FORMATTER = HtmlFormatter(nowrap=True, classprefix="p-")


def code(source: str) -> str:
    """Return Python in colour."""
    lines = highlight(source, PythonLexer(), _FORMATTER).rstrip("\n")
    return f'<pre class="code" tabindex="0"><code>{lines}</code></pre>'


def picture(path: Path, *, width: int | None = None) -> str:
    """Return a picture as a WebP of the same pixels in a data address, or made smaller to a width."""
    image = Image.open(path).convert("RGB")
    options = {"lossless": True, "quality": 60}
    if width is not None:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
        options = {"quality": 82}
    buffer = io.BytesIO()
    image.save(buffer, format="WEBP", method=4, **options)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def slug(text: str) -> str:
    """Return the anchor of a heading, as JupyterLab names it.

    Examples
    --------
    >>> slug("Predict, then look")
    'Predict,-then-look'
    """
    return text.replace(" ", "-")


def tied(html: str) -> str:
    """Return HTML in which punctuation stays with the formula before it."""
    return re.sub(r"(<math(?:(?!<math).)*?</math>)([.,;:!?)]+)", r'<span class="tie">\1\2</span>', html)


class Prose:
    """Turns the Markdown of one notebook into HTML.

    Parameters
    ----------
    folder : Path
        Where the notebook is: its links and pictures are relative to it.
    stills : set of str
        Names of pictures that are left out, because an explorer shows them.

    Attributes
    ----------
    headings : list of (int, str, str)
        Level, anchor and HTML of each heading so far.
    """

    def __init__(self, folder: Path, stills: set[str] = frozenset()):
        self.headings: list[tuple[int, str, str]] = []
        self._markdown = MarkdownWithMath(renderer=_Renderer(folder, stills, self.headings))

    def html(self, source: str) -> str:
        """Return Markdown as HTML."""
        return tied(self._markdown.render(source))


class _Renderer(IPythonRenderer):
    def __init__(self, folder: Path, stills: set[str], headings: list[tuple[int, str, str]]):
        super().__init__(escape=False, exclude_anchor_links=True)
        self._folder, self._stills, self._headings = folder, stills, headings

    def heading(self, text: str, level: int, **attributes) -> str:
        anchor = slug(unescape(re.sub("<[^>]*>", "", text)))
        self._headings.append((level, anchor, text))
        mark = f'<a class="anchor" href="#{escape(anchor)}" aria-hidden="true" tabindex="-1">#</a>' if level > 1 else ""
        return f'<h{level} id="{escape(anchor)}">{text}{mark}</h{level}>\n'

    def paragraph(self, text: str) -> str:
        # A paragraph of a still alone is empty without it.
        return f"<p>{text}</p>\n" if text.strip() else ""

    def block_code(self, text: str, info: str | None = None) -> str:
        return code(text) if info == "python" else f'<pre tabindex="0"><code>{escape(text)}</code></pre>\n'

    def table(self, text: str) -> str:
        # A corner without words heads nothing.
        text = re.sub(r"<th[^>]*></th>", "<td></td>", text)
        return f'<div class="wide" tabindex="0"><table>\n{text}</table></div>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        url = page_of(url)
        if re.match(r"https?:", url):
            return f'<a href="{escape(url)}" rel="noopener">{text}</a>'
        local = url.startswith("#") or url.partition("#")[0].endswith(".html")
        # Files of the project are not beside the page.
        return f'<a href="{escape(url)}">{text}</a>' if local else f'<span class="file">{text}</span>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        if posixpath.basename(url) in self._stills:
            return ""
        return f'<img src="{picture(self._folder / url)}" alt="{escape(text)}" loading="lazy">'

    def inline_math(self, body: str) -> str:
        return breakable(unescape(body))

    def block_math(self, body: str) -> str:
        return f'<div class="formula" tabindex="0">{mathml(unescape(body), block=True)}</div>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def page_of(url: str) -> str:
    """Return the address of the page that a link to a notebook of the same folder leads to.

    Examples
    --------
    >>> page_of("05_rope_scores.ipynb#Why"), page_of("https://arxiv.org/abs/2104.09864")
    ('05_rope_scores.html#Why', 'https://arxiv.org/abs/2104.09864')
    """
    return re.sub(r"^([\w-]+)\.ipynb(#.*)?$", r"\1.html\2", url)
