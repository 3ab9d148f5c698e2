"""The parts of published decoders, against what is told of them elsewhere."""

import pytest

from transformer_parts.models.architectures import architecture, architectures, table
from transformer_parts.models.configs import PUBLISHED
from transformer_parts.models.excerpt import load_excerpt


def test_every_released_model_has_a_row_and_the_worked_example_has_none():
    assert [row.model for row in architectures()] == [name for name in PUBLISHED if name != "toy layer"]


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        # Radford et al. 2019 and the released model.py: wpe of 1,024 rows, norm before each branch, gelu by tanh.
        ("GPT-2 small", ("learned, 1,024 rows", "LayerNorm", "Pre", "GELU (tanh)", "", "12 of 12")),
        # arXiv:2302.13971, section 2.2.
        ("Llama 1 7B", ("RoPE, base 10,000", "RMSNorm", "Pre", "SwiGLU", "", "32 of 32")),
        # arXiv:2407.21783, table 3: RoPE theta 500,000, SwiGLU, 8 key and value heads.
        ("Llama 3 8B", ("RoPE, base 500,000", "RMSNorm", "Pre", "SwiGLU", "", "8 of 32")),
        # config.json of microsoft/phi-2: partial_rotary_factor 0.4 of 80 channels, gelu_new.
        (
            "Phi-2",
            ("RoPE, base 10,000, 32 of 80 channels", "LayerNorm", "Pre, parallel", "GELU (tanh)", "", "32 of 32"),
        ),
        # arXiv:2505.09388, section 2: QK-norm, pre-normalization, base 1,000,000.
        ("Qwen3 8B", ("RoPE, base 1,000,000", "RMSNorm", "Pre", "SwiGLU", "yes", "8 of 32")),
        # arXiv:2408.00118, section 2: norms before and after each sub-layer, approximated GeGLU.
        ("Gemma 2 2B", ("RoPE, base 10,000", "RMSNorm", "Sandwich", "GEGLU", "", "4 of 8")),
    ],
)
def test_the_parts_are_those_that_are_published(model, parts):
    assert architecture(model)[1:] == parts


def test_the_base_of_smollm2_is_that_of_its_file():
    assert PUBLISHED["SmolLM2 135M"].rope_base == load_excerpt().rope_base


def test_learned_positions_have_no_base_and_others_have_one():
    for name, entry in PUBLISHED.items():
        assert (entry.rope_base is None) == bool(entry.config.max_positions), name


def test_models_with_the_same_parts_share_a_line():
    lines = table(architectures(), ("norm", "placement", "model")).splitlines()
    assert len(lines) == 5
    assert lines[0].split() == ["norm", "placement", "model"]
    assert sum(line.startswith("RMSNorm") for line in lines) == 2
    named = ", ".join(line.split("  ")[-1].strip() for line in lines[1:]).split(", ")
    assert sorted(named) == sorted(row.model for row in architectures())


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="model: got 'GPT-9', want one of"):
        architecture("GPT-9")
    with pytest.raises(ValueError, match="columns: got 'colour', want one of 'model'"):
        table(architectures(), ["colour"])
