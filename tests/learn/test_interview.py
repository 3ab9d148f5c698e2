"""The bank of questions: what is in it, and what the loader refuses."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from transformer_parts.learn import evidence, interview
from transformer_parts.learn.interview import LEVELS
from transformer_parts.learn.interview_files import load_bank, translated
from transformer_parts.maths.rope import rotate

PROJECT = Path(__file__).parents[2]
FOLDER = Path(interview.__file__).parent / "questions"
BANK = load_bank()

#: What everybody asks, as the issue lists it: a word that the question has.
EVERYBODY_ASKS = (
    "position information",
    "Sinusoidal or learned",
    "Explain RoPE",
    "How is RoPE extended",
    "LayerNorm or RMSNorm",
    "Pre-norm or post-norm",
    "SwiGLU",
    "activation matter",
    "training of Transformers unstable",
    "128K",
)

PLACES = r"arXiv \d{4}\.\d{4,5}|20\d\d|issue|pull request|code|released|ONNX|IEEE"

every_question = pytest.mark.parametrize("question", BANK.questions, ids=lambda question: question.id)
every_claim = pytest.mark.parametrize("claim", BANK.claims, ids=lambda claim: claim.id)


def test_the_bank_is_large_enough():
    assert len(BANK.questions) >= 55
    assert len(BANK.claims) >= 75
    assert all(len(BANK.select(topic=topic)) >= 3 for topic in BANK.topics)
    assert all(len(BANK.select(level=level)) >= 4 for level in LEVELS)


def test_about_half_of_all_claims_are_true():
    """Who always answers "true", or always "false", gets no more than about half of them right."""
    assert 0.45 <= sum(claim.holds for claim in BANK.claims) / len(BANK.claims) <= 0.55
    by_topic = {topic: [claim.holds for claim in BANK.claims if claim.topic == topic] for topic in BANK.topics}
    assert all(any(holds) and not all(holds) for holds in by_topic.values())


def test_what_everybody_asks_is_there():
    asked = [question.question for question in BANK.select(everybody_asks=True)]
    assert len(asked) == len(EVERYBODY_ASKS)
    assert all(sum(words in text for text in asked) == 1 for words in EVERYBODY_ASKS)


def test_select_refuses_what_is_not_there():
    with pytest.raises(ValueError, match="topic: got 'Cooking'"):
        BANK.select(topic="Cooking")
    with pytest.raises(ValueError, match="level: got 'hard'"):
        BANK.select(level="hard")


@every_question
def test_every_number_of_a_question_is_computed(question):
    filled = question.filled()
    texts = [filled.question, filled.short, filled.whiteboard, filled.wrong, filled.refuted]
    texts += [text for item in filled.follow_ups for text in (item.question, item.answer)]
    assert not any("<<" in text or ">>" in text or "nan" in text.split() for text in texts)
    assert filled.refuted != question.refuted


def spoken_words(text):
    """Count the words of a text said aloud: a number is one; in a formula each letter, name, number and sign is."""
    words = 0
    for place, part in enumerate(re.split(r"\$+([^$]+)\$+", evidence.PLACE.sub("0", text))):
        if place % 2:
            read = re.sub(r"\\(mathrm|text|mathsf|t?frac|[,;!])|[{}_]", " ", part)
            words += len(re.findall(r"\\?[A-Za-z]+|\d[\d.,]*|[-+=/·^<>]", read))
        else:
            words += sum(any(map(str.isalnum, word)) for word in part.split())
    return words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Divide by the root: <<root:.2f>>.", 5),
        ("one – two", 2),
        ("width $8d/3$", 5),  # width eight d over three
        (r"by $\sqrt{d_h}$", 4),  # by root d h
        (r"$10^{-5}$ and $n-m$", 8),  # ten to the minus five and n minus m
    ],
)
def test_words_are_counted_as_they_are_said(text, words):
    assert spoken_words(text) == words


@every_question
def test_a_question_can_be_answered_in_its_time(question):
    """150 words a minute: 75 words take 30 seconds.  One of them is a number; the whiteboard has a formula."""
    assert 45 <= spoken_words(question.short) <= 75
    assert re.search(r"<<|\d", question.short)
    assert "$" in question.whiteboard
    assert question.wrong.startswith('"')


def test_the_pytorch_code_of_the_bank_is_rope():
    torch = pytest.importorskip("torch")
    (question,) = [question for question in BANK.questions if question.id == "write-rope"]
    (code,) = re.findall(r"```python\n(.*?)```", question.whiteboard, re.DOTALL)
    names = {"torch": torch}
    exec(code, names)
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 8))
    got = names["apply_rope"](torch.tensor(x), *names["build_tables"](20, 8), torch.arange(5) + 11)
    assert np.allclose(got, rotate(x, np.arange(5) + 11, layout="split"), rtol=0, atol=1e-5)


@every_question
def test_sources_are_told_with_their_places(question):
    assert all(re.search(PLACES, source) for source in question.sources)


@every_claim
def test_what_a_claim_says_of_itself_is_what_is_computed(claim):
    holds, shown = claim.settled()
    assert holds == claim.holds
    assert "<<" not in shown


@pytest.mark.parametrize("entry", [*BANK.questions, *BANK.claims], ids=lambda entry: entry.id)
def test_the_notebook_of_an_entry_is_there(entry):
    assert (PROJECT / f"notebooks/en/{entry.notebook}.ipynb").exists()


#: Module of evidence → the notebooks that teach what it computes.
TAUGHT_IN = {
    "positions": ("01_why_position", "02_positions", "03_relative_bias"),
    "rope": ("04_rope", "05_rope_scores", "06_rope_layout"),
    "cache": ("07_cache",),
    "context_extension": ("08_context_extension", "16_long_context"),
    "norms": ("09_norms", "10_norm_placement"),
    "feedforward": ("11_activations", "12_swiglu"),
    "budget": ("13_budget",),
    "training": ("07_cache", "10_norm_placement", "14_decoder_layer", "15_stability", "18_real_model"),
}


def test_an_entry_leads_to_a_notebook_that_teaches_its_evidence():
    cited = {}
    for entry in (*BANK.questions, *BANK.claims):
        module = evidence.find(entry.evidence).__module__.rpartition(".")[2]
        assert entry.notebook in TAUGHT_IN[module], entry.id
        cited.setdefault(module, set()).add(entry.notebook)
    assert {module: set(notebooks) for module, notebooks in TAUGHT_IN.items()} == cited


def test_every_evidence_is_used_and_documented():
    used = {entry.evidence for entry in (*BANK.questions, *BANK.claims)}
    there = {name for module in evidence.MODULES for name in module.__all__}
    assert used == there
    assert all(evidence.find(name).__doc__ for name in there)


def test_texts_ask_for_numbers_that_are_there():
    asked = {}
    for entry in (*BANK.questions, *BANK.claims):
        texts = [str(value) for value in vars(entry).values()]
        asked.setdefault(entry.evidence, set()).update(*map(evidence.names_in, texts))
    for name, names in asked.items():
        numbers = evidence.find(name)()
        assert names <= numbers.keys()
        assert names, name


# ---------------------------------------------------------------- what the loader refuses

QUESTION = """topic = "Positions"
[[questions]]
id = "a"
level = "core"
question = "What?"
short = "So."
whiteboard = "$x$"
follow_ups = [{ question = "And?", answer = "Yes." }, { question = "Or?", answer = "No." }]
wrong = "Not."
refuted = "<<equivariance:.1f>>"
evidence = "order_is_not_seen"
sources = ["Someone, §1"]
notebook = "01_why_position"
"""
CLAIM = """topic = "Positions"
[[claims]]
id = "a"
statement = "It is."
holds = true
shown = "<<equivariance:.1f>>"
evidence = "order_is_not_seen"
notebook = "01_why_position"
"""


def load(folder, text, name="t.toml"):
    (folder / name).write_text(text, "utf-8")
    return load_bank(folder)


def test_a_small_file_is_read(tmp_path):
    bank = load(tmp_path, QUESTION + CLAIM.split("\n", 1)[1])
    assert (bank.questions[0].id, bank.questions[0].everybody_asks, bank.claims[0].holds) == ("a", False, True)
    assert bank.topics == ("Positions",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('topic = "Positions"\n', "", "t.toml, topic: got nothing, want text"),
        ("short =", "short", "t.toml: got .*, want TOML"),
        ("short =", f"deep = {'[' * 100_000}\nshort =", "t.toml: got .*, want TOML"),
        ("short =", f"long = 1{'0' * 5000}\nshort =", "t.toml: got .*, want TOML"),
        ('level = "core"', f"level = 1{'0' * 400}", "level: got 10+, want text"),
        ('level = "core"', 'level = "hard"', r"question 1 \(a\), level: got 'hard', want .*core"),
        ('short = "So."\n', "", r"t.toml, question 1 \(a\), short: got nothing, want text"),
        ('short = "So."', 'short = " "', r"short: got ' ', want text"),
        ('short = "So."', "short = 3", r"short: got 3, want text"),
        ('short = "So."', 'short = "So."\ncolour = "red"', r"colour: got a field of that name, want only"),
        ('id = "a"\n', "", "t.toml, question 1, id: got nothing"),
        (', { question = "Or?", answer = "No." }', "", "follow_ups: got 1, want two"),
        ('answer = "No."', 'reply = "No."', "follow-up 2, answer: got nothing"),
        ('["Someone, §1"]', "[]", r"sources: got \[\], want at least one"),
        ("order_is_not_seen", "no_such", "evidence: got 'no_such', want a name in __all__"),
        ('"01_why_position"', '"why"', "notebook: got 'why', want the stem of a notebook"),
        ("<<equivariance:.1f>>", "0.5", "refuted: got no computed number"),
        ('"$x$"', '"$x"', "whiteboard: got a dollar sign that nothing closes"),
        ('"$x$"', "'so \\alpha'", "whiteboard: got LaTeX outside a formula"),
        ('"$x$"', '"<b>x</b>"', "whiteboard: got HTML"),
        ('"$x$"', '"**x"', "whiteboard: got bold that nothing closes"),
        ('"$x$"', '"# x"', "whiteboard: got a heading"),
        ('"$x$"', '"""|a|b|\n|-|-|\n|$|x|$|b|"""', "whiteboard: got a | in a formula of a table"),
    ],
)  # fmt: skip
def test_a_faulty_question_is_refused_by_file_entry_and_field(old, new, message, tmp_path):
    assert old in QUESTION
    with pytest.raises(ValueError, match=message):
        load(tmp_path, QUESTION.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("holds = true", 'holds = "yes"', "claim 1 .a., holds: got 'yes', want true or false"),
        ("<<equivariance:.1f>>", "it is", "shown: got no computed number"),
        ("[[claims]]", "[[claim]]", "t.toml, claim: got a field of that name"),
    ],
)
def test_a_faulty_claim_is_refused(old, new, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, CLAIM.replace(old, new, 1))


def test_an_id_stands_once(tmp_path):
    load(tmp_path, QUESTION)
    with pytest.raises(ValueError, match="id of a question: got a twice"):
        load(tmp_path, QUESTION, "u.toml")


def test_a_number_that_is_not_there_is_refused(tmp_path):
    question = load(tmp_path, QUESTION.replace("equivariance:.1f", "speed:.1f")).questions[0]
    with pytest.raises(ValueError, match="text: got <<speed>>, want one of equivariance"):
        question.filled()
    with pytest.raises(ValueError, match="a format that a number can have"):
        evidence.fill("<<a:.1q>>", {"a": 1.0})


@pytest.mark.parametrize(
    ("number", "form", "printed"),
    [
        (-0.5, ".2f", "−0.50"),
        (3e-16, ".0e", "3·10⁻¹⁶"),
        (0.0, ".0e", "0"),
        (np.inf, "", "∞"),
        (1234, ",", "1,234"),
    ],
)
def test_numbers_are_printed_as_in_books(number, form, printed):
    assert evidence.fill(f"<<a:{form}>>", {"a": number}) == printed


def test_thousands_stand_close_in_a_formula():
    text = "$<<a:,>>$, $$<<a:,>>$$ and <<a:,>>"
    assert evidence.fill(text, {"a": 1234}) == "$1{,}234$, $$1{,}234$$ and 1,234"


def test_the_readme_of_the_folder_shows_what_loads(tmp_path):
    """Its example is a question and a claim that the loader takes."""
    (example,) = re.findall(r"```toml\n(.*?)```", (FOLDER / "README.md").read_text("utf-8"), re.DOTALL)
    bank = load(tmp_path, example)
    assert len(bank.questions) == len(bank.claims) == 1
    bank.questions[0].filled()
    shutil.rmtree(tmp_path)


# ---------------------------------------------------------------- languages


def in_another_language(folder, change=lambda text: text):
    """Return the bank with one file of the English folder, changed, in the place of a translation."""
    (folder / "2_rope.toml").write_text(change((FOLDER / "en/2_rope.toml").read_text("utf-8")), "utf-8")
    return translated(BANK, load_bank(folder))


def test_a_translated_entry_takes_the_place_of_the_english_one(tmp_path):
    bank = in_another_language(tmp_path, lambda text: text.replace("Explain RoPE", "Erkläre RoPE"))
    changed = [(was, now) for was, now in zip(BANK.questions, bank.questions, strict=True) if was != now]
    assert [(was.id, now.id) for was, now in changed] == [("rope-relative", "rope-relative")]
    assert changed[0][1].question.startswith("Erkläre RoPE")
    assert bank.claims == BANK.claims


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('id = "rope-relative"', 'id = "rope-relativ"', "question rope-relativ: got an id that English lacks"),
        ("holds = true", "holds = false", "holds: got False, want True, as in English"),
        ('level = "core"', 'level = "depth"', "level: got 'depth', want 'core', as in English"),
    ],
)
def test_a_translation_changes_texts_alone(tmp_path, old, new, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        in_another_language(tmp_path, lambda text: text.replace(old, new, 1))


@pytest.mark.parametrize("folder", [path for path in sorted(FOLDER.iterdir()) if path.is_dir()], ids=lambda p: p.name)
def test_a_folder_holds_entries_of_the_english_bank_alone(folder):
    assert translated(BANK, load_bank(folder)).topics


def test_a_bank_of_no_language_is_refused():
    with pytest.raises(ValueError, match="language: got 'klingon', want one of 'en'"):
        load_bank(language="klingon")
