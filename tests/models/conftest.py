"""The small model's file, and the real weights where they are."""

import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_gguf import EPS, ROPE_BASE, SIZES, WORDS, tiny_tensors, write_gguf

from transformer_parts.models import weights


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> SimpleNamespace:
    """The small model's file and what was written into it."""
    quantised = {"blk.0.ffn_down.weight": "Q4_1", "blk.1.ffn_down.weight": "Q8_0"}
    tensors = tiny_tensors()
    path = write_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf", tensors, quantised=quantised)
    return SimpleNamespace(
        path=path, tensors=tensors, quantised=quantised, words=WORDS, rope_base=ROPE_BASE, eps=EPS, **SIZES
    )


@pytest.fixture
def rewrite(tmp_path):
    """A function that writes the small model with some fields or tensors changed."""

    def write(tensors=None, **changed):
        return write_gguf(tmp_path / "changed.gguf", tiny_tensors() if tensors is None else tensors, **changed)

    return write


@pytest.fixture(scope="session")
def real_path() -> Path:
    try:
        return weights.find()
    except FileNotFoundError as absent:
        pytest.skip(str(absent))


@pytest.fixture(scope="session")
def their_logits(torch, transformers):
    """A function that lets transformers load a GGUF file and returns its logits of some tokens, in float64."""
    if importlib.util.find_spec("accelerate") is None and not os.environ.get("CI"):
        pytest.skip("accelerate is not installed (pip install -r requirements-oracles.txt)")

    def logits(path: Path, token_ids, dtype: str) -> np.ndarray:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=getattr(torch, dtype), attn_implementation="eager"
        )
        with torch.no_grad():
            return model(torch.tensor(np.atleast_2d(token_ids))).logits.double().numpy().squeeze()

    return logits
