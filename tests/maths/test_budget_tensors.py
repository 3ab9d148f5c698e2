"""budget_tensors: the tally from names and shapes as files have them."""

import pytest

from transformer_parts.maths.budget import DecoderConfig, count, count_tensors
from transformer_parts.maths.budget_tensors import part_of

SMOLLM2 = DecoderConfig(d_model=576, n_layers=30, n_heads=9, n_kv_heads=3, d_ff=1536, vocab_size=49152, tied=True)


def smollm2_gguf() -> dict[str, tuple[int, ...]]:
    """Names and shapes as they stand in the GGUF file of SmolLM2-135M (its axes are in reversed order)."""
    shapes = {"token_embd.weight": (576, 49152), "output_norm.weight": (576,)}
    for i in range(30):
        layer = {
            "attn_norm": (576,),
            "attn_q": (576, 576),
            "attn_k": (576, 192),
            "attn_v": (576, 192),
            "attn_output": (576, 576),
            "ffn_norm": (576,),
            "ffn_gate": (576, 1536),
            "ffn_up": (576, 1536),
            "ffn_down": (1536, 576),
        }
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
    return shapes


def test_smollm2_from_its_file():
    shapes = smollm2_gguf()
    tally = count_tensors(shapes)
    assert len(shapes) == 272
    assert tally.total == 134_515_008
    assert tally == count(SMOLLM2).model
    assert [f"{100 * s:.1f}" for s in tally.shares.values()] == ["21.0", "0.0", "19.7", "59.2", "0.0", "0.0"]


TINY = {"hidden_size": 28, "intermediate_size": 26, "num_hidden_layers": 3, "vocab_size": 19}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "pad_token_id": 0}
OURS = {"d_model": 28, "d_ff": 26, "n_layers": 3, "vocab_size": 19, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6}

BIASES = {"qkv_bias": True, "output_bias": True, "ffn_bias": True}


@pytest.mark.parametrize(
    ("kind", "theirs", "ours"),
    [
        (
            "Llama",
            {"attention_bias": True, "mlp_bias": True},
            BIASES,
        ),
        ("Qwen3", {}, {"qk_norm": True}),
        ("Gemma2", {"tie_word_embeddings": False}, {"norms_per_layer": 4}),
    ],
)
def test_llama_like_models_of_transformers(torch, transformers, kind, theirs, ours):
    config = getattr(transformers, f"{kind}Config")(**TINY, **HEADS, **theirs)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    tally = count_tensors({name: tuple(p.shape) for name, p in model.named_parameters()})
    assert tally.total == sum(p.numel() for p in model.parameters())
    assert tally == count(DecoderConfig(**OURS, **ours)).model


@pytest.mark.parametrize("prefix", ["transformer.", ""])
def test_gpt2_of_transformers(torch, transformers, prefix):
    config = transformers.GPT2Config(n_embd=21, n_layer=2, n_head=3, n_positions=17, vocab_size=19)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    names = {name.replace("transformer.", prefix): p.shape for name, p in model.named_parameters()}
    ours = DecoderConfig(
        d_model=21,
        n_layers=2,
        n_heads=3,
        d_ff=84,
        vocab_size=19,
        max_positions=17,
        ffn="mlp",
        norm="layer",
        tied=True,
        **BIASES,
    )
    assert count_tensors(names) == count(ours).model


@pytest.mark.parametrize(
    "name",
    [
        "blk.0.ffn_gate_exps.weight",  # mixture of experts
        "rope_freqs.weight",  # a table, not a parameter
        "blk.x.attn_q.weight",
        "blk.0.output_norm.weight",
        "attn_q.weight",
        "blk.0.attn_q",
        "my.blk.0.attn_q.weight",
        "",
    ],
)
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=r"^name: got .*, want a tensor's name"):
        part_of(name)
    with pytest.raises(ValueError, match=r"^name: got"):
        count_tensors({"output_norm.weight": (3,), name: (2, 3)})


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match=r"^shapes: got no tensors"):
        count_tensors({})
    for axis in (0, -1, 2.0):
        with pytest.raises(ValueError, match=r"^shapes\['output.weight'\]: got"):
            count_tensors({"output.weight": (7, axis)})
