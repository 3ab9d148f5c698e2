"""No visible word escapes the seam: all is rendered in the pseudo-language, which marks what came through.

`UNCONVERTED` lists what still has words of its own, by module or by name.  Each entry must fail here: whoever converts
it takes it off the list.
"""

import ast
import logging
import re
import string
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import ipywidgets as widgets
import pytest
from exercises import EXERCISES, MODULES
from visible_words import escaped

from transformer_parts import language as languages
from transformer_parts.draw import frame
from transformer_parts.draw.view import View
from transformer_parts.explore import controls
from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.interview import SHEETS
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.prediction import Prediction
from transformer_parts.language import Message, _, language
from transformer_parts.learn.drills import Drill
from transformer_parts.learn.exercise import Exercise
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.source import show

LIB = Path(languages.__file__).parents[1]
TOOLS = Path(__file__).parents[2] / "tools"
PSEUDO = language("pseudo")
ROOM = "transformer_parts."
DRILLS = {
    (module.__name__.removeprefix(ROOM), value.name): value
    for module in MODULES
    if module.__name__ not in (f"{ROOM}learn.drills", f"{ROOM}learn.drills.catalogue")
    for value in vars(module).values()
    if isinstance(value, Drill)
}

UNCONVERTED = frozenset(
    """
    """.split()  # noqa: SIM905
)


def case(item: object, module: str, name: str):
    """Return a parameter that must fail while its module or its name is on the list."""
    module = module.removeprefix(ROOM)
    marks = [pytest.mark.xfail(strict=True)] if {module, name} & UNCONVERTED else []
    return pytest.param(item, id=name, marks=marks)


def kinds(items) -> list:
    return [case(kind, kind.__module__, kind.__name__) for kind in items]


def walk(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def texts(widget: widgets.Widget) -> Iterator[str]:
    """Yield every text of a widget and of those inside it."""
    for inner in walk(widget):
        for name in ("description", "placeholder", "tooltip"):
            yield getattr(inner, name, None) or ""
        if isinstance(inner, widgets.HTML | widgets.HTMLMath | widgets.Label | widgets.Textarea):
            yield inner.value
        yield from getattr(inner, "play_names", ())
        if hasattr(inner, "_options_full"):
            yield from (label for label, _value in inner._options_full)


def found(words: Iterator[str]) -> list[str]:
    return [word for text in words for word in escaped(text)]


def in_pseudo(*words: str) -> list[str]:
    """Return what escapes of words that are not shown by a widget: they must be messages."""
    return found(PSEUDO.text(text) for text in words)


@pytest.fixture(autouse=True)
def _pictures_cost_little(monkeypatch, tmp_path):
    monkeypatch.setattr(frame, "live", lambda canvas: b"")
    monkeypatch.setattr(View.__init__, "__defaults__", (1.0,))
    monkeypatch.setenv("TRANSFORMER_PARTS_RATINGS", str(tmp_path / "ratings.json"))


# ---------------------------------------------------------------- explore


@pytest.mark.parametrize("kind", kinds(PANELS))
def test_no_word_of_a_panel_escapes(kind, monkeypatch):
    panel: Panel = kind(language="pseudo")
    seen = {"start": found(texts(panel.widget)), "alt": escaped(panel._repr_mimebundle_()[0]["text/plain"])}
    for label, values in panel.presets.items():
        panel.set(**values)
        seen[label] = found(texts(panel.widget))
    logging.disable(logging.CRITICAL)

    def fail(**_state):
        raise ValueError(_("a forced error"))

    monkeypatch.setattr(panel, "compute", fail)
    panel.refresh()
    logging.disable(logging.NOTSET)
    assert "⟦a forced error⟧" in panel.status.value
    seen["error"] = escaped(panel.status.value)
    assert not {place: words for place, words in seen.items() if words}


@pytest.mark.parametrize("kind", kinds(LIVE_RUNS))
def test_no_word_of_a_live_run_escapes(kind):
    run = kind(language="pseudo")
    words = found(texts(run.widget)) + escaped(run._repr_mimebundle_()[0]["text/plain"])
    run.start()
    words += found(texts(run.widget))
    run.stop()
    assert run.wait(60)
    assert not words + found(texts(run.widget))


@pytest.mark.parametrize("kind", kinds(SHEETS))
def test_no_word_of_a_sheet_escapes(kind):
    sheet = kind(language="pseudo")
    words = found(texts(sheet.widget)) + escaped(sheet._repr_mimebundle_()[0]["text/plain"])
    for _round in range(2):
        for widget in list(walk(sheet.widget)):
            if isinstance(widget, widgets.Button) and not widget.disabled:
                widget.click()
                words += found(texts(sheet.widget))
    assert not words


@pytest.mark.parametrize("choices", [(), ("⟦no⟧", "⟦yes⟧")])
def test_no_word_of_a_prediction_escapes(choices):
    asked = Prediction("⟦Is it so?⟧", answer=lambda: 1, choices=choices, language="pseudo")
    words = found(texts(asked.widget)) + escaped(asked._repr_mimebundle_()[0]["text/html"])
    for button in (*asked.buttons, asked.commit, asked.ask_class, asked.count):
        button.click()
        words += found(texts(asked.widget))
        asked.again.click()
    for typed in ("x", "1", "1 2", "1 2 3"):
        asked.number.value = typed
        words += found(texts(asked.widget))
        asked.again.click()
        asked.votes.value = typed
        words += found(texts(asked.widget))
        asked.again.click()
    assert not words


def test_no_word_of_shown_source_escapes(monkeypatch):
    monkeypatch.setenv("TRANSFORMER_PARTS_LANGUAGE", "pseudo")
    title = re.search("<summary>(.*)</summary>", show(walk, found).data)[1]
    assert "⟦" in title
    assert not escaped(title)


def test_a_control_shows_words_in_a_language_and_keeps_its_values():
    menu = controls.choice(_("method"), {_("none at all"): 1, "YaRN": 2}, 2)
    plain = controls.choice(_("layout"), [_("split"), _("interleaved")], "interleaved")
    slider = controls.integer(_("heads"), 3, 1, 8)
    for control in (menu, plain, slider):
        controls.translate(control, PSEUDO)
    assert (menu.description, menu.options, menu.value) == ("⟦method⟧", (("⟦none at all⟧", 1), ("YaRN", 2)), 2)
    assert plain.options == (("⟦split⟧", "split"), ("⟦interleaved⟧", "interleaved"))
    assert plain.value == "interleaved"
    assert (slider.description, slider.value) == ("⟦heads⟧", 3)


def test_a_menu_of_numbers_keeps_them():
    menu = controls.choice(_("groups"), (1, 2, 4), 2)
    controls.translate(menu, PSEUDO)
    assert (menu.description, menu.options, menu.value) == ("⟦groups⟧", (1, 2, 4), 2)


def test_a_control_is_left_alone_in_english():
    menu = controls.choice(_("layout"), [_("split"), _("interleaved")], "interleaved")
    changes = []
    menu.observe(changes.append)
    controls.translate(menu, language("en"))
    assert not changes


@pytest.mark.parametrize("path", sorted(chain(LIB.glob("explore/*.css"), TOOLS.glob("publish/templates/*.css"))))
def test_no_word_is_in_a_style_sheet(path):
    said = re.findall(r"""content:[^;]*?["']([^"';]*[A-Za-z]{2}[^"';]*)["']""", path.read_text("utf-8"))
    assert not said


@pytest.mark.parametrize("path", sorted(LIB.glob("explore/front/*.js")), ids=lambda path: path.name)
def test_no_word_is_in_a_script(path):
    code = re.sub(r"//.*|/\*[\s\S]*?\*/", "", path.read_text("utf-8"))
    shown = re.findall(r"""(?:textContent|ariaLabel|title|alt|setAttribute\("aria-label",)\s*=?\s*([^;]*)""", code)
    literals = [text for value in shown for text in re.findall(r"""["`]([^"`]*)["`]""", value)]
    words = [re.sub(r"\$\{[^}]*\}", " ", text) for text in literals if not text.startswith((".", "[", "aria-"))]
    # Anything that begins like a sentence or a label.
    words += re.findall(r"""["`]([A-Z][a-z]+(?:[ .][^"`]*)?)["`]""", code)
    assert not [text for text in words if re.search("[A-Za-z]{2}", text)]


# ---------------------------------------------------------------- learn


@pytest.mark.parametrize(
    "exercise", [case(item, f"learn.{name.split('.')[0]}", name) for name, item in EXERCISES.items()]
)
def test_no_word_of_an_exercise_escapes(exercise, monkeypatch):
    messages = [mistake.message for mistake in exercise.mistakes]
    assert not in_pseudo(exercise.task, *exercise.takes, exercise.returns, *exercise.hints, *messages)
    monkeypatch.setenv("TRANSFORMER_PARTS_LANGUAGE", "pseudo")
    assert "⟦one case⟧" in repr(exercise)
    assert not escaped(repr(exercise)) + escaped(exercise._repr_html_())


def stops(x):
    raise KeyError("x")


def changes(x):
    x += 1
    return x


RESULTS = {
    "right": lambda x: 2 * x,
    "known": lambda x: x,
    "wrong": lambda x: 3 * x,
    "narrow": lambda x: (2 * x).astype("float32"),
    "none": lambda x: None,
    "text": lambda x: "twice",
    "complex": lambda x: 2j * x,
    "shape": lambda x: x[:1],
    "infinite": lambda x: x / 0.0,
    "stops": stops,
    "changes": changes,
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_no_word_of_a_verdict_escapes(function, monkeypatch):
    exercise = Exercise(
        "double(x)", lambda x: 2 * x, lambda rng: (1 + rng.random(3),), [], [_("Add it."), _("Add it to itself.")]
    )
    verdict = exercise.check(function)
    monkeypatch.setenv("TRANSFORMER_PARTS_LANGUAGE", "pseudo")
    # What Python calls an error or a type is a name in code, and an error's own text is Python's.
    allowed = frozenset({"KeyError", "str"})
    assert "⟦" in repr(verdict)
    assert not escaped(repr(verdict), allowed=allowed) + escaped(verdict._repr_html_(), allowed=allowed)
    assert exercise.hint(2) == "⟦Add it to itself.⟧"


@pytest.mark.parametrize("drill", [case(drill, module, f"{module}:{name}") for (module, name), drill in DRILLS.items()])
def test_no_word_of_a_drill_escapes(drill):
    for seed in range(5):
        each = drill.case(seed)
        assert not in_pseudo(drill.title, each.task, each.working, each.shown, *each.slipped_shown)
    assert not in_pseudo(*(words for slip in drill.slips for words in (slip.name, slip.message)))


@pytest.mark.parametrize("text", ["", "x" * 200, "three", "1 parsec", "1e99", "1", "-1", "2", "2.01"])
@pytest.mark.parametrize("drill", [item for item in DRILLS.values() if item.name in ("rotate", "wavelength")])
def test_no_word_of_an_answer_to_a_drill_escapes(drill, text):
    each = drill.case(1)
    words = each.check(text).message
    assert isinstance(words, Message)
    typed = frozenset({"three", "parsec", "e99", "x" * 200})
    known = frozenset({"positions", "tokens", "rad"})  # units one may type are the same in every language
    assert not escaped(PSEUDO.text(words), allowed=typed | known)


def test_no_word_of_the_bank_escapes():
    bank = load_bank(language="pseudo")
    english = load_bank(language="en")
    assert [entry.id for entry in chain(bank.questions, bank.claims)] == [
        entry.id for entry in chain(english.questions, english.claims)
    ]
    words = []
    for question in map(type(bank.questions[0]).filled, bank.questions):
        words += [question.topic, question.question, question.short, question.whiteboard, question.wrong]
        words += [question.refuted, *question.sources]
        words += [text for item in question.follow_ups for text in (item.question, item.answer)]
    for claim in bank.claims:
        words += [claim.topic, claim.statement, claim.settled()[1]]
    assert not found(words)


# ---------------------------------------------------------------- what Babel can find


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(chain(LIB.rglob("*.py"), TOOLS.rglob("*.py"))):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("_", "plural"):
                yield f"{path}:{node.lineno}", node


def test_templates_are_literals_with_a_value_for_every_place():
    for where, node in calls():
        count = 1 if node.func.id == "_" else 2
        templates = [item.value if isinstance(item, ast.Constant) else None for item in node.args[:count]]
        assert all(isinstance(text, str) for text in templates), f"{where}: Babel reads literal templates alone"
        names = {keyword.arg for keyword in node.keywords} | ({"n"} if node.func.id == "plural" else set())
        if None not in names and names:
            for text in templates:
                places = {name for _text, name, _form, _how in string.Formatter().parse(text) if name is not None}
                assert places <= names, f"{where}: no value for {places - names}"
            assert node.func.id == "plural" or places == names, f"{where}: no place for {names - places}"


def test_no_message_is_made_inside_an_f_string():
    for path in sorted(chain(LIB.rglob("*.py"), TOOLS.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                inside = [item for item in ast.walk(node) if isinstance(item, ast.Name) and item.id in ("_", "plural")]
                assert not inside, f"{path}:{node.lineno}: a message in an f-string is lost"


def test_the_list_of_the_unconverted_names_what_is_there():
    known = {kind.__name__ for kind in (*PANELS, *LIVE_RUNS, *SHEETS)}
    known |= {kind.__module__.removeprefix(ROOM) for kind in (*PANELS, *LIVE_RUNS, *SHEETS)}
    known |= {f"learn.{name.split('.')[0]}" for name in EXERCISES} | {module for module, _name in DRILLS}
    assert not UNCONVERTED - known - set(EXERCISES)
