"""The tokenizer of a GGUF file: byte-level byte-pair encoding from the file's own vocabulary and merges."""

from collections.abc import Sequence
from types import MappingProxyType

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from transformer_parts.maths import require
from transformer_parts.models.weights import GGUFFile

# GGUF's types of tokens that merges never make, control and user-defined, and whether decoding may skip them
_ADDED = MappingProxyType({3: True, 4: False})

# Each byte as the character that represents it in the vocabulary: itself if it is printable, else one from 256 on.
_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = tuple(byte for byte in range(256) if byte not in _PRINTABLE)
_BYTES = "".join(chr(byte if byte in _PRINTABLE else 256 + _OTHERS.index(byte)) for byte in range(256))


def load_tokenizer(file: GGUFFile) -> Tokenizer:
    """Return the tokenizer that a GGUF file describes; ``encode(text).ids`` and ``decode(ids)`` are mutual inverses.

    Text is cut before each digit and by GPT-2's rule into words with their leading space; each word's UTF-8 bytes,
    written as 256 printable characters, are joined by the merges in their order.  Control tokens such as
    ``<|im_start|>`` are recognised in the text.  Encoding adds no token of its own.

    Sennrich, Haddow & Birch 2016, arXiv 1508.07909, §3.2 (byte-pair encoding); Radford et al. 2019, "Language Models
    are Unsupervised Multitask Learners", §2.2 (its byte-level form).
    """
    require.one_of("tokenizer.ggml.model", file.field("tokenizer.ggml.model"), ("gpt2",))
    require.one_of("tokenizer.ggml.pre", file.field("tokenizer.ggml.pre"), ("smollm",))
    words = file.texts("tokenizer.ggml.tokens")
    merges = [tuple(pair.split(" ")) for pair in file.texts("tokenizer.ggml.merges")]
    types = file.field("tokenizer.ggml.token_type")
    if not isinstance(types, list):
        raise ValueError(f"tokenizer.ggml.token_type: got {types!r:.60}, want a list")
    if len(types) != len(words):
        raise ValueError(f"tokenizer.ggml.token_type: got {len(types)} entries, want {len(words)}, one a token")
    known = set(words)
    if len(known) < len(words):
        raise ValueError(f"tokenizer.ggml.tokens: got {len(known)} different ones of {len(words)}, want each once")
    for pair in merges:
        if len(pair) != 2 or not known.issuperset({*pair, "".join(pair)}):
            raise ValueError(f"tokenizer.ggml.merges: got {pair}, want two tokens that join to a token")
    tokenizer = Tokenizer(BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(
        [
            AddedToken(word, special=_ADDED[kind], normalized=False)
            for word, kind in zip(words, types, strict=True)
            if kind in _ADDED
        ]
    )
    return tokenizer


def token_texts(tokenizer: Tokenizer, token_ids: Sequence[int]) -> tuple[str, ...]:
    r"""Return the text of each token alone, leading space included; of a piece of a character its bytes, as \xe4."""
    return tuple(_text(tokenizer, int(i)) for i in token_ids)


def _text(tokenizer: Tokenizer, token_id: int) -> str:
    text = tokenizer.decode([token_id], skip_special_tokens=False)
    if "\N{REPLACEMENT CHARACTER}" not in text:
        return text
    return bytes(map(_BYTES.index, tokenizer.id_to_token(token_id))).decode("utf-8", "backslashreplace")
