"""Hidden numbers: where they stand, what is asked, and that probabilities are those of the whole text."""

import numpy as np
import pytest
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel

from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.models.configs import LlamaSizes
from transformer_parts.models.fused_layer import FusedLayer
from transformer_parts.models.generation import Session
from transformer_parts.models.smollm2 import SmolLM2
from transformer_parts.runs import passkey

WORDS = [*"0123456789", ".", "The", "key", "of", "the", "door", "is", "lies", "in", "box", "number", "page"]
WORDS += [*passkey.DOORS, *passkey.BOXES]


@pytest.fixture(scope="module")
def tokenizer():
    made = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="page"))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    return made


@pytest.fixture(scope="module")
def model():
    settings = {"d_model": 12, "n_heads": 2, "head_dim": 6, "d_ff": 17, "std": 0.4, "dtype": np.float32}
    layers = tuple(FusedLayer.of(DecoderLayer.random(**settings, seed=seed)) for seed in (1, 2))
    embedding = np.random.default_rng(3).normal(0, 1, (len(WORDS), 12)).astype(np.float32)
    sizes = LlamaSizes(len(WORDS), 12, 2, 2, 2, 6, 17, context_length=64, rope_base=10000.0, eps=1e-6)
    return SmolLM2(sizes, embedding, layers, np.ones(12, np.float32), embedding.T)


def words(tokens) -> str:
    return " ".join(WORDS[token] for token in tokens)


@pytest.mark.parametrize("doors", [1, 3, 8])
def test_every_sentence_stands_once_at_its_depth(tokenizer, doors):
    pages = [WORDS.index("page")] * 300
    text = passkey.hide(tokenizer, pages, 300, doors, two_hops=False, seed=4)
    assert len(text.tokens) == 300
    for door, depth, answer in zip(range(doors), text.depths, text.answers, strict=True):
        sentence = f"The key of the {passkey.DOORS[door]} door is {words(answer)} ."
        assert words(text.tokens).count(sentence) == 1
        end = len(words(text.tokens).split(sentence)[0].split()) + len(sentence.split())
        assert depth == pytest.approx(end / 300)
    gaps = np.diff(sorted(text.depths))
    assert doors == 1 or gaps.max() - gaps.min() < 0.02
    assert len({tuple(answer) for answer in text.answers}) == doors


def test_two_hops_lead_over_the_box(tokenizer):
    text = passkey.hide(tokenizer, [WORDS.index("page")] * 300, 300, 4, two_hops=True, seed=4)
    said = words(text.tokens)
    assert set(text.questions) == {"one hop", "two hops"}
    for door in range(4):
        box = said.split(f"The key of the {passkey.DOORS[door]} door lies in the ")[1].split()[0]
        assert f"The number of the {box} box is {words(text.answers[door])} ." in said
        assert words(text.questions["one hop"][door]) == f"The number of the {box} box is"
        assert passkey.DOORS[door] in words(text.questions["two hops"][door])
        assert box not in words(text.questions["two hops"][door])


def test_the_same_seed_gives_the_same_text(tokenizer):
    pages = [WORDS.index("page")] * 200
    texts = [passkey.hide(tokenizer, pages, 200, 2, two_hops=False, seed=seed) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_probabilities_are_those_of_the_whole_text(model, tokenizer):
    text = passkey.hide(tokenizer, [WORDS.index("page")] * 90, 90, 3, two_hops=False, seed=5)
    found = passkey.ask(model, text)["one hop"]
    for door in range(3):
        for j, answer in enumerate(text.answers):
            question = text.questions["one hop"][door]
            whole = [*text.tokens, *question, *answer]
            z = model.forward(whole).astype(np.float64)[-len(answer) - 1 : -1]
            log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
            wanted = log_p[np.arange(len(answer)), answer].mean()
            assert found[door, j] == pytest.approx(wanted, abs=1e-4)


def test_asking_leaves_the_session(model):
    session = Session(model)
    session.feed([1, 2, 3])
    passkey.log_probabilities(session, [4, 5], [[6], [7, 8]])
    assert session.tokens == (1, 2, 3)


def test_too_short_a_text_and_too_many_doors_are_refused(tokenizer):
    with pytest.raises(ValueError, match="length: got"):
        passkey.hide(tokenizer, [0] * 300, 40, 8, two_hops=False, seed=0)
    with pytest.raises(ValueError, match="doors: got 9"):
        passkey.hide(tokenizer, [0] * 300, 300, 9, two_hops=False, seed=0)


def test_the_plan_holds_every_length_and_every_number_of_doors():
    cases = list(passkey.plan([1024, 4096]))
    assert {case["length"] for case in cases} == {1024, 4096}
    assert {case["doors"] for case in cases if not case["two_hops"]} == {1, 2, 4, 8}
    assert {case["length"] for case in cases if case["two_hops"]} == {4096}
