"""Messages read as English and remember what they are made of; a language says them again."""

import copy
import pickle
import threading

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from transformer_parts import language as languages
from transformer_parts.language import Message, _, join, language, plural


@pytest.fixture
def german(tmp_path):
    """A language with a catalogue of its own, compiled as the build does it."""
    catalogue = Catalog("de", domain="transformer_parts")
    for english, german in {
        "Reset": "Zurücksetzen",
        "{part} turned by {angle:.1f} rad": "um {angle:.2f} rad gedreht: {part}",
        "the query": "die Query",
        "100 % of {sure}": "{sure}, zu 100 %",
        ("{n} step of {of}", "{n} steps of {of}"): ("{n} Schritt von {of}", "{n} Schritte von {of}"),
    }.items():
        catalogue.add(english, german)
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    with (folder / "transformer_parts.mo").open("wb") as file:
        write_mo(file, catalogue)
    return language("de", folder=tmp_path)


TURNED = _("{part} turned by {angle:.1f} rad", part=_("the query"), angle=1.57)


# ---------------------------------------------------------------- messages


def test_a_message_reads_as_its_english_text():
    assert TURNED == "the query turned by 1.6 rad"
    assert {TURNED: 1}["the query turned by 1.6 rad"] == 1
    assert hash(TURNED) == hash(str(TURNED))
    assert TURNED.template == "{part} turned by {angle:.1f} rad"
    assert TURNED.values["part"].template == "the query"


def test_without_values_braces_are_braces():
    assert _("{0, 1}") == "{0, 1}"
    assert _("{{{n}}}", n=1) == "{1}"


@pytest.mark.parametrize("words", [TURNED, _(""), plural("{n} step", "{n} steps", 2), join(", ", [TURNED, "x"])])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda words: pickle.loads(pickle.dumps(words))])
def test_a_copy_is_the_same_message(words, copied):
    other = copied(words)
    assert type(other) is Message
    assert (other, other.template, other.plural, dict(other.values)) == (
        words,
        words.template,
        words.plural,
        dict(words.values),
    )


@pytest.mark.parametrize(
    "change", [lambda words: setattr(words, "template", "x"), lambda words: delattr(words, "values")]
)
def test_a_message_cannot_be_changed(change):
    with pytest.raises(AttributeError, match="cannot be changed"):
        change(_("Reset"))
    with pytest.raises(TypeError):
        TURNED.values["angle"] = 2


@pytest.mark.parametrize("made", [TURNED + "", f"{TURNED}", str(TURNED), TURNED.upper(), ", ".join([TURNED, TURNED])])
def test_what_is_made_of_a_message_is_a_plain_string(made):
    assert type(made) is str


def test_a_value_that_a_template_lacks_is_an_error_at_once():
    with pytest.raises(KeyError, match="angle"):
        _("turned by {angle}", angel=1)


@pytest.mark.parametrize(("n", "text"), [(0, "0 steps of 9"), (1, "1 step of 9"), (2, "2 steps of 9")])
def test_plural_in_english(n, text):
    assert plural("{n} step of {of}", "{n} steps of {of}", n, of=9) == text


# ---------------------------------------------------------------- languages


def test_a_language_says_a_message_again(german):
    assert german.text(_("Reset")) == "Zurücksetzen"
    assert german.text(TURNED) == "um 1.57 rad gedreht: die Query"
    assert german.text(_("100 % of {sure}", sure=5)) == "5, zu 100 %"
    assert (
        german.text(plural("{n} step of {of}", "{n} steps of {of}", 1, of=_("the query"))) == "1 Schritt von die Query"
    )
    assert german.text(plural("{n} step of {of}", "{n} steps of {of}", 3, of=4)) == "3 Schritte von 4"
    assert german.text(join(" {} ", [_("Reset"), "plain", _("the query")])) == "Zurücksetzen {} plain {} die Query"


def test_what_a_catalogue_lacks_stays_english(german):
    assert german.text(_("never seen {x}", x=_("the query"))) == "never seen die Query"
    assert german.text(_("")) == ""
    assert german.text("Reset") == "Reset"


@pytest.mark.parametrize("words", [TURNED, _("Reset"), _("{0, 1}"), plural("{n} step", "{n} steps", 2), "plain"])
def test_english_says_what_the_code_says(words):
    assert language("en").text(words) == words


def test_the_language_is_the_argument_then_the_environment_then_english(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_PARTS_LANGUAGE", raising=False)
    assert language().name == "en"
    monkeypatch.setenv("TRANSFORMER_PARTS_LANGUAGE", "")
    assert language().name == "en"
    monkeypatch.setenv("TRANSFORMER_PARTS_LANGUAGE", "pseudo")
    assert language().name == "pseudo"
    assert language("en").name == "en"
    assert language(language("pseudo")).name == "pseudo"


def test_an_unknown_language_is_refused(monkeypatch, german, tmp_path):
    with pytest.raises(ValueError, match="language: got 'fr', want one of 'en', 'de', 'pseudo'"):
        language("fr", folder=tmp_path)
    monkeypatch.setenv("TRANSFORMER_PARTS_LANGUAGE", "../de")
    with pytest.raises(ValueError, match=r"language: got '\.\./de'"):
        language()


def test_two_threads_speak_two_languages(german):
    said = {"de": set(), "pseudo": set()}

    def talk(spoken):
        for _time in range(2000):
            said[spoken.name].add(spoken.text(TURNED))

    threads = [threading.Thread(target=talk, args=(spoken,)) for spoken in (german, language("pseudo"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {"de": {"um 1.57 rad gedreht: die Query"}, "pseudo": {"⟦the query⟧ ⟦turned by⟧ 1.6 ⟦rad⟧"}}


# ---------------------------------------------------------------- the pseudo-language


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (_("Reset"), "⟦Reset⟧"),
        (_("{0, 1} is a set"), "⟦{0, 1} is a set⟧"),
        (_("{name} of {{{n:>3}}} heads", name="yarn", n=4), "yarn ⟦of {⟧  4} ⟦heads⟧"),
        (_("q·k = {x}", x=1), "q·k = 1"),
        (_("one\n\n- two\n- three **3**"), "⟦one⟧\n\n- ⟦two⟧\n- ⟦three **3**⟧"),
        (plural("{n} step", "{n} steps", 2), "2 ⟦steps⟧"),
        (join(", ", [_("query"), "key"]), "⟦query⟧, key"),
        ("plain", "plain"),
    ],
)
def test_pseudo_marks_the_words_of_templates_and_leaves_values(words, text):
    assert language("pseudo").text(words) == text


def test_every_language_there_is_can_be_had():
    assert [language(name).name for name in languages.available()] == list(languages.available())
