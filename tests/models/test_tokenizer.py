"""The tokenizer: by a slow byte-pair loop, round trips, and transformers' reading of the same file."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.models.tokenizer import load_tokenizer, token_texts
from transformer_parts.models.weights import GGUFFile

PASSAGE = "The tower clock had stopped at 10:45; it's the guard's.\n\n  naïve — 東京 ∑ the the"


@pytest.fixture(scope="module")
def tokenizer(tiny):
    return load_tokenizer(GGUFFile(tiny.path))


def byte_characters() -> dict[int, str]:
    """GPT-2's printable stand-in of each byte: itself where printable, else the next free one from U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    free = iter(range(256, 512))
    return {byte: chr(byte) if byte in printable else chr(next(free)) for byte in range(256)}


def slow_encode(text: str, words: list[str], merges: list[tuple[str, str]]) -> list[int]:
    """Digits alone; GPT-2's words; then the first merge that applies, again and again (Sennrich et al., §3.2)."""
    table, out = byte_characters(), []
    for piece in re.split(r"(\d)", text):
        for word in re.findall(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s+", piece):
            parts = [table[byte] for byte in word.encode()]
            while ranked := [p for p in pairwise(parts) if p in merges]:
                best = min(ranked, key=merges.index)
                i = 0
                while i < len(parts) - 1:
                    if (parts[i], parts[i + 1]) == best:
                        parts[i : i + 2] = ["".join(best)]
                    i += 1
            out += [words.index(part) for part in parts]
    return out


def test_ids_by_a_slow_byte_pair_loop(tokenizer, tiny):
    merges = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("Ġ", "Ġ")]
    assert tokenizer.encode(PASSAGE).ids == slow_encode(PASSAGE, tiny.words, merges)


def test_the_first_merge_goes_first_and_digits_never_merge(rewrite, tiny):
    """Of "the" either "he" or "th" can be made, and the list has "he" first; "10" could be one token."""
    merges = [("h", "e"), ("t", "h"), ("1", "0")]
    words = [*tiny.words[: tiny.words.index("he")], *map("".join, merges)]
    fields = {"token_list": words, "token_types": [1] * len(words), "token_merges": list(map(" ".join, merges))}
    tokenizer = load_tokenizer(GGUFFile(rewrite(**fields)))
    for text, parts in (("the", ["t", "he"]), ("th", ["th"]), ("10", ["1", "0"]), ("110", ["1", "1", "0"])):
        ids = tokenizer.encode(text).ids
        assert [words[i] for i in ids] == parts
        assert ids == slow_encode(text, words, merges)


@given(text=st.text())
def test_decode_undoes_encode(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_control_tokens_are_one_token_and_none_is_added(tokenizer):
    assert tokenizer.encode("<|im_start|>the<|im_end|>").ids[0] == 1
    assert tokenizer.encode("<|im_start|>").ids == [1]
    assert tokenizer.encode("").ids == []


def test_digits_stand_alone(tokenizer):
    assert token_texts(tokenizer, tokenizer.encode("  10").ids) == ("  ", "1", "0")


def test_texts_keep_the_leading_space(tokenizer):
    assert token_texts(tokenizer, tokenizer.encode("a the").ids) == ("a", " the")


def test_a_piece_of_a_character_is_shown_as_its_bytes(tokenizer):
    texts = token_texts(tokenizer, tokenizer.encode("東é \N{REPLACEMENT CHARACTER}").ids)
    assert not [text for text in texts if "\N{REPLACEMENT CHARACTER}" in text and len(text.encode()) < 3]
    assert "".join(texts[:3]) == r"\xe6\x9d\xb1"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tokenizer_model": "llama"}, r"tokenizer\.ggml\.model: got 'llama', want one of 'gpt2'"),
        ({"tokenizer_pre": "qwen2"}, r"tokenizer\.ggml\.pre: got 'qwen2', want one of 'smollm'"),
        ({"tokenizer_model": None}, r"got no field 'tokenizer\.ggml\.model'"),
        ({"token_list": None}, r"got no field 'tokenizer\.ggml\.tokens'"),
        ({"token_types": [1, 1]}, r"tokenizer\.ggml\.token_type: got 2 entries, want 263"),
        ({"token_merges": ["h e", "x yz"]}, r"tokenizer\.ggml\.merges: got \('x', 'yz'\)"),
        ({"token_merges": ["h e t"]}, r"tokenizer\.ggml\.merges: got \('h', 'e', 't'\), want two tokens"),
    ],
)
def test_other_files_are_refused(rewrite, changed, message):
    with pytest.raises(ValueError, match=message):
        load_tokenizer(GGUFFile(rewrite(**changed)))


@pytest.mark.oracle
def test_real_ids_are_those_of_transformers(real_path, transformers):
    text = PASSAGE.replace("  naïve", "naïve")  # transformers' reading of a GGUF cuts no digits after two spaces
    theirs = transformers.AutoTokenizer.from_pretrained(real_path.parent, gguf_file=real_path.name)
    ours = load_tokenizer(GGUFFile(real_path))
    assert ours.encode(text).ids == theirs(text)["input_ids"]
    assert ours.decode(ours.encode(PASSAGE).ids) == PASSAGE
