"""The texts of the bank as HTML: formulas untouched, everything else escaped, nothing left as markup."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from transformer_parts.explore.prose import html, line, notebook_link
from transformer_parts.learn.drills import DRILLS
from transformer_parts.learn.interview_files import load_bank

BANK = load_bank()
TEXTS = [
    text
    for question in BANK.questions
    for text in (
        question.question,
        question.short,
        question.whiteboard,
        question.wrong,
        question.refuted,
        *question.sources,
        *(part for item in question.follow_ups for part in (item.question, item.answer)),
    )
] + [text for claim in BANK.claims for text in (claim.statement, claim.shown)]
TEXTS += [text for drill in DRILLS for text in (drill.case(1).task, drill.case(1).working)]


class Words(HTMLParser):
    """Reads what a page shows, and complains of tags that do not close."""

    def __init__(self, text):
        super().__init__()
        self.shown, self.open = "", []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.shown += data


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\n\nb", "<p>a</p>\n<p>b</p>"),
        ("- a\n- **b**", "<ul>\n<li>a</li>\n<li><strong>b</strong></li>\n</ul>"),
        ("*a* and 2 * 3 * 4", "<p><em>a</em> and 2 * 3 * 4</p>"),
        ("`x < y` & z", "<p><code>x &lt; y</code> &amp; z</p>"),
        ("$a_*b*c < d$ **$e$**", "<p>$a_*b*c &lt; d$ <strong>$e$</strong></p>"),
        ("$$a\n_b_$$ c", "<p>$$a\n_b_$$ c</p>"),
        ("```python\na = b ** -2  # $c$\n```", '<pre><code class="language-python">a = b ** -2  # $c$\n</code></pre>'),
        ("# a\n- # b", "<p># a</p>\n<ul>\n<li># b</li>\n</ul>"),
        ("[a](javascript:b) ![c](d) <https://e>", "<p>[a](javascript:b) ![c](d) &lt;https://e&gt;</p>"),
        ("<script>", "<p>&lt;script&gt;</p>"),
        ("", ""),
    ],
)
def test_html(text, wanted):
    assert html(text) == wanted


def test_a_table_has_formulas_in_its_cells():
    shown = html("a\n\n| *b* | $c_d$ |\n|---|---|\n| e | `f` |\n\ng")
    assert re.findall(r"<(?:th|td)>(.*?)</t", shown) == ["<em>b</em>", "$c_d$", "e", "<code>f</code>"]
    assert shown.startswith("<p>a</p>")
    assert shown.endswith("<p>g</p>")


def test_a_line_has_no_paragraph():
    assert line("a *b*") == "a <em>b</em>"


def test_every_text_keeps_its_formulas_and_leaves_no_markup():
    assert len(TEXTS) > 400
    for text in (re.sub(r"^```.+?^```$", "", text, flags=re.DOTALL | re.MULTILINE) for text in TEXTS):
        shown = Words(html(text)).shown
        formulas = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
        assert formulas.findall(shown) == formulas.findall(text)
        rest = formulas.sub("", shown)
        assert "**" not in rest
        assert "`" not in rest
        assert not re.search(r"(?<!\w)\*\w|\w\*(?!\w)", rest), text
        assert unescape(rest) == rest


def test_a_notebook_is_linked_by_its_title_where_it_is_there(tmp_path):
    cells = [{"cell_type": "markdown", "source": ["# 04 · A <title>\n", "text"]}]
    (tmp_path / "04_rope.ipynb").write_text(json.dumps({"cells": cells}))
    link = notebook_link("04_rope", tmp_path)
    assert link == '<a href="04_rope.ipynb" target="_blank" rel="noopener">04 · A &lt;title&gt;</a>'
    assert notebook_link("05_other", tmp_path) == "notebook 05_other"
    (tmp_path / "06_broken.ipynb").write_text("{")
    assert notebook_link("06_broken", tmp_path) == "notebook 06_broken"
