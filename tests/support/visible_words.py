"""Finds words that a reader would see and that did not come through the seam for words.

Under the pseudo-language everything translated stands in ⟦ ⟧, so a word outside of the brackets has escaped.
"""

import re
from html.parser import HTMLParser

#: Words that are the same in every language: models, methods, optimizers, units, dtypes, and what numbers may print as.
ALLOWED = frozenset(
    """
    Llama Mistral Qwen Qwen2 Qwen3 Gemma Phi GPT BERT BLOOM MPT PaLM SmolLM2 GPTJ NeoX OLMo DeepSeek Falcon Whisper RoPE
    ALiBi YaRN NTK LongRoPE NoPE XPos RMSNorm LayerNorm DeepNorm DeepNet BatchNorm SwiGLU GeGLU ReGLU GLU ReLU
    GELU GEGLU SiLU Swish AdamW Adam SGD MHA MQA GQA MLA KV FFN Post Pre LN RMS XL FLOP FLOPs TFLOP GFLOP bytes kB MB
    GB TB KiB MiB GiB TiB rad ms px float64 float32 float16 bfloat16 fp32 fp16 bf16 int8 nan inf True False
    None sin cos exp log log₂ ln max min softmax sqrt arXiv
    """.split()  # noqa: SIM905
)
#: Attributes that are read aloud or shown.
SHOWN_ATTRIBUTES = (
    "alt", "title", "aria-label", "aria-valuetext", "placeholder",
    # What scripts and style sheets show.
    "data-words", "data-right", "data-wrong", "data-before", "data-after",
)  # fmt: skip
HIDDEN_TAGS = ("code", "style", "script", "pre")
#: Tags whose text is shown apart from what is before it.
CELL_TAGS = ("th", "td")
_TOKEN = re.compile(r"\w+")


class _Shown(HTMLParser):
    """Collects what is shown of an HTML text."""

    def __init__(self):
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0
        self._data: str | None = None

    def handle_starttag(self, tag, attrs):
        self._hidden += tag in HIDDEN_TAGS
        if ("translate", "no") in attrs:
            self._data = tag
        self.pieces += ["\n"] * (tag in CELL_TAGS)
        self.pieces += [f"\n{value}\n" for name, value in attrs if name in SHOWN_ATTRIBUTES and value]

    def handle_endtag(self, tag):
        self._hidden -= tag in HIDDEN_TAGS
        if tag == self._data:
            self._data = None

    def handle_data(self, data):
        if not self._hidden and self._data is None:
            self.pieces.append(data)


def escaped(text: str, *, allowed: frozenset[str] = ALLOWED, html: bool = True) -> list[str]:
    """Return the words of HTML, Markdown or plain text, in order, that stand outside of ⟦ ⟧.

    A word has two Latin letters in a row.  Names with an underscore are names used in code, and so is what stands in
    ``<code>`` or between backticks, and so are commands of LaTeX and places for values, as in {count}.  What is in “ ”
    or in an element with ``translate="no"`` is data: tokens of a text, shown as they are.
    """
    if html:
        shown = _Shown()
        shown.feed(text)
        shown.close()
        text = "".join(shown.pieces)
    # A single word in 'straight quotes' is a token too, as repr() writes it.
    data = r"⟦[^⟦⟧]*⟧|“[^“”]*”|(?<!\w)'[^\s']+'(?!\w)|\\[A-Za-z]+|\{\w+\}"
    bare = re.sub(r"`[^`]*`", " ", re.sub(data, " ", text))
    return [
        token
        for token in (found.lstrip("0123456789") for found in _TOKEN.findall(bare) if "_" not in found)
        if token not in allowed and re.search(r"[A-Za-zÀ-ɏ]{2}", token)
    ]
