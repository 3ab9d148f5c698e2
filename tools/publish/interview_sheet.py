"""The sheets of the interview page without a kernel: every question, the statements to judge, drills, an interview.

Their words come from `transformer_parts.learn` through the functions that the widgets use, and every number in them is
computed when the page is made.
"""

from collections.abc import Callable, Sequence
from html import escape
from types import MappingProxyType

from publish.formulas import breakable, mathml
from publish.prose import tied
from transformer_parts import language as languages
from transformer_parts.explore import interview, prose
from transformer_parts.language import Language, _
from transformer_parts.learn.coding_round import TASKS
from transformer_parts.learn.drills import DRILLS, Drill
from transformer_parts.learn.interview import LEVELS, Claim, Question
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.mock_interview import draw

#: Of the drills' numbers, the order of the statements, and the questions of the interview.
SEED = 17
#: Questions of the interview.
ASKED = 5


class Texts:
    """Turns the texts of `transformer_parts.learn` into HTML of the site.

    Parameters
    ----------
    titles : mapping of str to str
        Title of each page by its stem.
    language : str or Language, optional
        Language of the texts.

    Attributes
    ----------
    language : Language
    bank : Bank
        The questions and statements in that language.
    """

    def __init__(self, titles: dict[str, str], language: str | Language | None = None):
        self._titles = titles
        self.language = languages.language(language)
        self.bank = load_bank(language=self.language)

    def html(self, text: str) -> str:
        """Return paragraphs and lists."""
        html = prose.html(self.language.text(text), _formula)
        html = html.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
        return tied(html)

    def line(self, text: str) -> str:
        """Return one line, without a paragraph around it."""
        return tied(prose.line(self.language.text(text), _formula))

    def link(self, stem: str) -> str:
        """Return a link to the page of a notebook."""
        if stem not in self._titles:
            return escape(self.language.text(_("notebook {stem}", stem=stem)))
        return f'<a href="{escape(stem)}.html">{escape(self._titles[stem])}</a>'


def _formula(source: str) -> str:
    """Return a formula as MathML; one of its own line scrolls where it is too wide."""
    if source.startswith("$$"):
        return f'<span class="formula" tabindex="0">{mathml(source[2:-2], block=True)}</span>'
    return breakable(source[1:-1])


def sheet(name: str, titles: dict[str, str], language: str | Language | None = None) -> dict:
    """Return what the template shows of a sheet.

    Raises
    ------
    KeyError
        If there is no sheet of that name.
    """
    return {"sheet": name, **_CONTENTS[name](Texts(titles, language))}


def _question(question: Question, texts: Texts) -> dict:
    question = question.filled()
    return {
        "id": question.id,
        "level": question.level,
        "asked": question.everybody_asks,
        "question": texts.line(question.question),
        "short": texts.html(question.short),
        "whiteboard": texts.html(question.whiteboard),
        "wrong": texts.line(question.wrong),
        "refuted": texts.html(question.refuted),
        "follow_ups": [(texts.line(item.question), texts.html(item.answer)) for item in question.follow_ups],
        "sources": [texts.line(source) for source in question.sources],
        "link": texts.link(question.notebook),
    }


def _cards(texts: Texts) -> dict:
    bank = texts.bank
    topics = [(topic, [_question(item, texts) for item in bank.select(topic=topic)]) for topic in bank.topics]
    return {"topics": [(topic, found) for topic, found in topics if found], "levels": LEVELS}


def _claim(claim: Claim, texts: Texts) -> dict:
    holds, shown = claim.settled()
    return {
        "topic": claim.topic,
        "statement": texts.html(claim.statement),
        "holds": holds,
        "shown": texts.html(shown),
        "link": texts.link(claim.notebook),
    }


def _claims(texts: Texts) -> dict:
    return {
        "claims": [_claim(claim, texts) for claim in interview.ClaimRound(seed=SEED, language=texts.language).claims]
    }


def _drill(drill: Drill, texts: Texts) -> dict:
    case = drill.case(SEED)
    return {
        "title": texts.language.text(drill.title),
        "task": texts.html(case.task),
        "working": texts.html(case.working),
        "slips": [
            (texts.language.text(number), texts.language.text(slip.name), texts.line(slip.message))
            for slip, number in zip(drill.slips, case.slipped_shown, strict=True)
        ],
        "link": texts.link(drill.notebook),
    }


def _drills(texts: Texts) -> dict:
    return {"drills": [_drill(drill, texts) for drill in DRILLS]}


def _mock(texts: Texts) -> dict:
    drawn: Sequence[Question] = draw(texts.bank.select(level=LEVELS[0]), ASKED, seed=SEED)
    return {"questions": [(item.topic, _question(item, texts)) for item in drawn]}


def _coding(texts: Texts) -> dict:
    tasks = [
        {
            "title": texts.language.text(task.title),
            "task": texts.line(escape(texts.language.text(task.exercise.task), quote=False)),
            "signature": task.signature,
            "hints": [texts.line(hint) for hint in task.exercise.hints],
            "link": texts.link(task.notebook),
        }
        for task in TASKS
    ]
    return {"tasks": tasks}


_CONTENTS: MappingProxyType[str, Callable[[Texts], dict]] = MappingProxyType(
    {"QuestionCards": _cards, "DrillSheet": _drills, "ClaimRound": _claims, "MockSheet": _mock, "CodingRound": _coding}
)
