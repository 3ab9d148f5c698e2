"""Sessions and generation: cached equals recomputed, and greedy text is that of transformers."""

import numpy as np
import pytest

from transformer_parts.maths.sampling import next_token_probabilities
from transformer_parts.models.generation import Session, generate
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.weights import GGUFFile

IDS = [1, 71, 262, 5, 71, 0, 131, 89, 12, 200, 71]


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(GGUFFile(tiny.path))


def test_whatever_the_chunks_the_logits_are_those_of_the_whole(model):
    whole = model.forward(IDS)
    for parts in ([11], [1] * 11, [4, 1, 6]):
        session, start = Session(model, capacity=3), 0
        for count in parts:
            logits = session.feed(IDS[start : start + count])
            start += count
            np.testing.assert_allclose(logits, whole[start - 1], rtol=0, atol=2e-5)
        assert session.tokens == tuple(IDS)
    np.testing.assert_allclose(Session(model).feed(IDS, chunk=3), whole[-1], rtol=0, atol=2e-5)


def test_greedy_text_is_that_of_recomputing(model):
    session, text = Session(model), list(IDS)
    session.feed(IDS)
    cached = list(generate(session, 17))
    for _ in range(17):
        text.append(int(model.forward(text)[-1].argmax()))
    assert cached == text[len(IDS) :]
    assert session.tokens == tuple(text)


def test_drawn_text_follows_its_seed_and_its_settings(model):
    def drawn(seed, **settings):
        session = Session(model)
        session.feed(IDS)
        return list(generate(session, 13, seed=seed, **settings))

    assert drawn(5, temperature=1.3) == drawn(5, temperature=1.3)
    assert drawn(5, temperature=1.3) != drawn(6, temperature=1.3)
    assert drawn(5, temperature=1.3, top_k=1) == drawn(0)
    text = list(IDS)
    for token in drawn(7, temperature=1.5, top_k=4, top_p=0.9):
        assert next_token_probabilities(model.forward(text)[-1], temperature=1.5, top_k=4, top_p=0.9)[token] > 0
        text.append(token)


def test_a_stop_token_ends_the_text_and_is_not_fed(model):
    session = Session(model)
    session.feed(IDS)
    free = list(generate(session, 9))
    session.prompt(IDS)
    stopped = list(generate(session, 9, stop={free[3]}))
    assert stopped == free[: free.index(free[3]) + 1]
    assert session.tokens == (*IDS, *stopped[:-1])


def test_a_new_prompt_keeps_what_is_alike(model):
    session = Session(model)
    session.feed(IDS)
    other = [*IDS[:6], 9, 8]
    np.testing.assert_allclose(session.prompt(other), model.forward(other)[-1], rtol=0, atol=2e-5)
    np.testing.assert_allclose(session.prompt(other), model.forward(other)[-1], rtol=0, atol=2e-5)
    np.testing.assert_allclose(session.prompt(other[:3]), model.forward(other[:3])[-1], rtol=0, atol=2e-5)
    assert session.tokens == tuple(other[:3])


@pytest.mark.parametrize(
    ("bad", "options", "name"),
    [
        ([], {}, "token_ids"),
        ([71, 263], {}, "token_ids"),
        ([[1, 71]], {}, "token_ids"),
        ([1.7], {}, "token_ids"),
        ([1, 5], {"chunk": 0}, "chunk"),
    ],
)
def test_a_refused_prompt_leaves_the_session(model, bad, options, name):
    session = Session(model)
    before = session.feed(IDS)
    with pytest.raises(ValueError, match=f"^{name}: got "):
        session.prompt(bad, **options)
    assert session.tokens == tuple(IDS)
    np.testing.assert_array_equal(session.logits, before)


def test_rewinding_asks_for_a_feed(model):
    session = Session(model)
    with pytest.raises(ValueError, match="logits: got a session"):
        session.logits  # noqa: B018
    session.feed(IDS)
    session.rewind(4)
    assert session.tokens == tuple(IDS[:4])
    with pytest.raises(ValueError, match="logits: got a session"):
        next(generate(session, 1))
    np.testing.assert_allclose(session.feed(IDS[4:]), model.forward(IDS)[-1], rtol=0, atol=2e-5)
    with pytest.raises(ValueError, match="length: got 12"):
        session.rewind(12)


def test_a_refused_token_leaves_the_session(model):
    session = Session(model)
    before = session.feed(IDS)
    for bad in ([263], [[1, 2]], [], [0.5]):
        with pytest.raises(ValueError, match="token_ids"):
            session.feed(bad)
    with pytest.raises(ValueError, match="chunk"):
        session.feed([1], chunk=0)
    assert session.tokens == tuple(IDS)
    np.testing.assert_array_equal(session.logits, before)


def test_bytes_are_those_of_keys_and_values(model, tiny):
    session = Session(model)
    session.feed(IDS)
    assert session.nbytes == 2 * tiny.n_layers * tiny.n_kv_heads * tiny.head_dim * 4 * len(IDS)


@pytest.mark.oracle
def test_real_greedy_text_is_that_of_transformers(real_path, torch, transformers):
    file = GGUFFile(real_path)
    model = load_model(file)
    ids = load_tokenizer(file).encode("Before the bridge was built, the ferryman knew everyone in both").ids
    session = Session(model)
    session.feed(ids)
    ours = list(generate(session, 20))
    text = list(ids)
    for _ in range(3):
        text.append(int(model.logits(model.hidden(text)[-1]).argmax()))
    assert ours[:3] == text[len(ids) :]
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        real_path.parent, gguf_file=real_path.name, dtype=torch.float32
    )
    made = theirs.generate(
        torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=20, do_sample=False, pad_token_id=2
    )
    assert made[0, len(ids) :].tolist() == ours
