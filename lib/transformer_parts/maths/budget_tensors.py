"""The tally of a real model, counted from the names and shapes of the tensors in its file."""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from transformer_parts.maths import require
from transformer_parts.maths.budget_tally import Tally

# What the tensors of each part are called within their layer, and outside the layers: in GGUF files, in Hugging
# Face files of Llama-like models, and in those of GPT-2.
_IN_LAYER = MappingProxyType(
    {
        "attention": (
            *("attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output"),
            *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
            *("attn.c_attn", "attn.c_proj"),
        ),
        "feed_forward": (
            *("ffn_gate", "ffn_up", "ffn_down"),
            *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
            *("mlp.c_fc", "mlp.c_proj"),
        ),
        "norms": (
            *("attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm", "attn_q_norm", "attn_k_norm"),
            *("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm"),
            *("post_feedforward_layernorm", "self_attn.q_norm", "self_attn.k_norm"),
            *("ln_1", "ln_2"),
        ),
    }
)
_OUTSIDE = MappingProxyType(
    {
        "embedding": ("token_embd", "model.embed_tokens", "transformer.wte", "wte"),
        "positions": ("position_embd", "transformer.wpe", "wpe"),
        "norms": ("output_norm", "model.norm", "transformer.ln_f", "ln_f"),
        "head": ("output", "lm_head"),
    }
)
_NAME = re.compile(r"(?P<layer>(?:blk|model\.layers|transformer\.h|h)\.\d+\.)?(?P<stem>.+)\.(?:weight|bias)")


def part_of(name: str) -> str:
    """Return the part of the tally to which a tensor belongs, by its name.

    Parameters
    ----------
    name : str
        As it stands in the file, with its layer and the ending ``.weight`` or ``.bias``.

    Returns
    -------
    str
        The name of a field of `Tally`.

    Raises
    ------
    ValueError
        If the name is none of those that GGUF and Hugging Face files of dense Llama-like models and GPT-2 have:
        a tensor that isn't understood isn't quietly put aside.

    References
    ----------
    GGUF: ``TENSOR_NAMES`` in ``gguf-py/gguf/constants.py`` of github.com/ggml-org/llama.cpp.  Hugging Face:
    ``models/llama``, ``qwen3``, ``gemma2`` and ``gpt2`` of the transformers library.

    Examples
    --------
    >>> part_of("blk.29.ffn_gate.weight"), part_of("model.layers.0.self_attn.q_norm.weight")
    ('feed_forward', 'norms')
    """
    if found := _NAME.fullmatch(name):
        for part, stems in (_IN_LAYER if found["layer"] else _OUTSIDE).items():
            if found["stem"] in stems:
                return part
    raise require.refusal("name", repr(name), "a tensor's name of a dense Llama-like or GPT-2 model")


def count_tensors(shapes: Mapping[str, Sequence[int]]) -> Tally:
    """Count a real model's parameters by part, from the shapes of its tensors.

    Parameters
    ----------
    shapes : mapping of str to sequence of int
        Each stored tensor's name and shape, in either order of axes; shapes of weights, not of packed bytes.
        A tied head must not be listed under a second name (files don't; a PyTorch ``state_dict`` does).

    Returns
    -------
    Tally
        The whole model.

    Raises
    ------
    ValueError
        For an unknown name, a shape with an axis below 1, or no tensors at all.

    Examples
    --------
    >>> count_tensors({"token_embd.weight": (576, 49152), "output_norm.weight": (576,)}).parts["embedding"]
    28311552
    """
    if not shapes:
        raise require.refusal("shapes", "no tensors", "at least one")
    parts = dict.fromkeys(Tally().parts, 0)
    for name, shape in shapes.items():
        parts[part_of(name)] += math.prod(require.integer(f"shapes[{name!r}]", axis) for axis in shape)
    return Tally(**parts)
