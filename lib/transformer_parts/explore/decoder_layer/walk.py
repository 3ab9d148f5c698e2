"""Explorer of one decoder layer: every tensor in turn, every part exchangeable."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transformer_parts.draw.decoder_layer import NOW, STREAM, DecoderWalkView, Walked
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, Term, number
from transformer_parts.language import _
from transformer_parts.maths.decoder import StackConfig, parameter_counts, random_layer, walk
from transformer_parts.maths.norms import moments

NAMES = MappingProxyType(
    {
        "x": _("X, the residual stream as it comes in"),
        "norm1": _("X̂, normalised for attention"),
        "q": _("Q, queries"),
        "k": _("K, keys"),
        "v": _("V, values"),
        "q_rotated": _("Q̃, queries turned by RoPE"),
        "k_rotated": _("K̃, keys turned by RoPE"),
        "scores": _("S, scaled scores"),
        "weights": _("A, attention weights"),
        "mixed": _("O, values mixed by the weights"),
        "attention": _("Attn, heads joined and projected"),
        "sum1": _("X + Attn, before its norm"),
        "U": _("U, the stream after attention"),
        "norm2": _("Û, normalised for the FFN"),
        "gate": _("G, the gate after SiLU"),
        "up": _("C, the content"),
        "product": _("G ⊙ C, content times gate"),
        "hidden": _("Z, the hidden layer after ReLU"),
        "ffn": _("FFN, projected back"),
        "sum2": _("U + FFN, before its norm"),
        "Y": _("Y, the residual stream as it leaves"),
    }
)
FFNS = MappingProxyType(
    {
        _("SwiGLU, three matrices"): "swiglu",
        _("plain, ReLU, same f"): "relu",
        _("plain, ReLU, 3f/2: same budget"): "relu 3/2",
    }
)
MASKS = MappingProxyType(
    {
        _("causal"): "causal",
        _("no mask"): "everything",
        _("one diagonal too far"): "one ahead",
        _("wrong way round"): "wrong way",
    }
)
PLACES = MappingProxyType({_("before each branch (Pre)"): "pre", _("after each sum (Post)"): "post"})
NORMS = MappingProxyType({"RMSNorm": "rms", "LayerNorm": "layer"})
#: Where a layer lacks a tensor: the one that it has in its place.
_INSTEAD = MappingProxyType(
    {
        "q_rotated": "q",
        "k_rotated": "k",
        "norm1": "x",
        "norm2": "U",
        "sum1": "U",
        "sum2": "Y",
        "gate": "hidden",
        "up": "hidden",
        "product": "hidden",
        "hidden": "product",
    }
)
#: Which keys a token may attend to, for each mask.
VISIBLE = MappingProxyType(
    {
        "causal": _("itself and all before"),
        "everything": _("all tokens: no mask"),
        "one ahead": _("itself, all before and the next one: the mask is one diagonal off"),
        "wrong way": _("itself and all after: the mask is transposed"),
    }
)
#: Standard deviation of the random weights: with 0.02, as in training, a layer of 8 channels would hardly move X.
STD = 0.35


class DecoderWalk(Panel[Walked]):
    """Step through one layer; exchange its parts and see what changes."""

    alt = _(
        "Above, a diagram of one decoder layer as small heat maps, one for each tensor, in two rows: from X through"
        " queries, keys, values, scores and weights to U, and from U through gate and content to Y. A blue line over"
        " each row is the residual stream. The present tensor has a red frame; those to come are empty. Below, the"
        " present tensor in large, a row for each token, with its formula, its shape and its scale."
    )
    _usual = MappingProxyType({"rope": True, "norm": "rms", "ffn": "swiglu", "sees": "causal", "placement": "pre"})
    _worked = MappingProxyType({"B": 2, "T": 3, "d": 8, "h": 2, "G": 2, "f": 16, **_usual})
    presets = MappingProxyType(
        {
            _("Worked sizes"): {**_worked, "step": 17, "entry": 0, "head": 0},
            _("Attention weights"): {**_worked, "step": 8},
            _("One kv head"): {**_worked, "G": 1, "step": 3},
            _("No RoPE"): {**_worked, "rope": False},
            "LayerNorm": {**_worked, "norm": "layer"},
            _("Plain FFN"): {**_worked, "ffn": "relu"},
            _("Plain FFN, same budget"): {**_worked, "ffn": "relu 3/2"},
            _("No mask"): {**_worked, "sees": "everything", "step": 8},
            _("Post"): {**_worked, "placement": "post"},
        }
    )
    play = "step"
    play_interval = 700
    primary = ("step", "rope", "placement", "ffn", "sees")
    handles = MappingProxyType({"tensor": Handle(_("tensor of the diagram"), ("step",))})

    def make_controls(self):
        self._tensor = "weights"
        return {
            "step": controls.integer(_("step"), 8, 0, 17),
            "entry": controls.integer(_("batch entry"), 0, 0, 1),
            "head": controls.integer(_("head shown"), 0, 0, 1),
            "B": controls.integer(_("B, sequences"), 2, 1, 4),
            "T": controls.integer(_("T, tokens"), 3, 1, 8),
            "d": controls.integer(_("d, width"), 8, 8, 32, step=8),
            "h": controls.stops(_("h, heads"), 2, (1, 2, 4)),
            "G": controls.stops(_("kv heads"), 2, (1, 2, 4)),
            "f": controls.integer(_("f, FFN width"), 16, 4, 40, step=4),
            "rope": controls.switch("RoPE", True),
            "norm": controls.choice(_("norm"), NORMS, "rms"),
            "placement": controls.choice(_("norms stand"), PLACES, "pre"),
            "ffn": controls.choice(_("FFN"), FFNS, "swiglu"),
            "sees": controls.choice(_("mask"), MASKS, "causal"),
            "seed": controls.integer(_("seed"), 0, 0, 20),
        }

    def make_view(self):
        return DecoderWalkView()

    def couple(self, name):
        value = {name: control.value for name, control in self.controls.items()}
        if name == "h":
            self.controls["head"].max = value["h"] - 1
            self.controls["G"].value = min(value["G"], value["h"])
        elif name == "G":
            self.controls["h"].value = max(value["G"], value["h"])
            self.controls["head"].max = self.controls["h"].value - 1
        elif name == "B":
            self.controls["entry"].max = value["B"] - 1
        names, step = self._tensors(value), self.controls["step"]
        if name in ("rope", "ffn", "placement"):
            # The tensor that was shown stays, or the one in its place.
            step.max = max(step.max, len(names) - 1)
            step.value = names.index(self._tensor if self._tensor in names else _INSTEAD[self._tensor])
            step.max = len(names) - 1
        self._tensor = names[step.value]

    def idle(self, state):
        one = {"entry": _("there is one sequence")} if state["B"] == 1 else {}
        return one | ({"head": _("there is one head")} if state["h"] == 1 else {})

    def track(self, handle):
        return self.view.places_of(self._tensors(self.state))

    @staticmethod
    def _tensors(state) -> list[str]:
        """Return the tensors of a layer in the order in which they are computed."""
        absent = {"hidden"} if state["ffn"] == "swiglu" else {"gate", "up", "product"}
        absent |= {"norm1", "norm2"} if state["placement"] == "post" else {"sum1", "sum2"}
        absent |= set() if state["rope"] else {"q_rotated", "k_rotated"}
        return [name for name in NAMES if name not in absent]

    def compute(self, *, step, entry, head, B, T, d, h, G, f, rope, norm, placement, ffn, sees, seed):
        usual = StackConfig(vocab_size=1, n_layers=1, d_model=d, n_heads=h, n_kv_heads=G, d_ff=f, eps=1e-6)
        config = replace(
            usual,
            norm=norm,
            placement=placement,
            ffn=ffn.split()[0],
            d_ff=f * 3 // 2 if ffn == "relu 3/2" else f,
            rope_base=10000.0 if rope else None,
        )
        x = np.random.default_rng([seed, 14]).standard_normal((B, T, d))
        steps = walk(random_layer(config, std=STD, seed=seed), x, config, sees=sees)
        wanted = walk(random_layer(usual, std=STD, seed=seed), x, usual)[-1].value
        return Walked(
            steps=tuple(steps),
            at=step,
            entry=entry,
            head=head,
            config=config,
            sees=sees,
            parameters=parameter_counts(config),
            changed=float(np.abs(steps[-1].value - wanted).max()),
        )

    def formula(self, data):
        step = _("step {at} of {last}", at=data.at, last=len(data.steps) - 1)
        return [Term(step), Term(": "), Term(NAMES[data.now.name], NOW, "now")]

    def rows(self, data):
        now, total = data.now, data.parameters
        so_far = sum(data.so_far.values())
        weights = ", ".join(f"{name} {_size(data, name)}" for name in now.uses) or _("none")
        return [
            Row(_("step {at} of {last}", at=data.at, last=len(data.steps) - 1), NAMES[now.name], NOW, mark="now"),
            Row(_("axes"), " × ".join(now.axes.replace("…", "B").split()), minor=True),
            Row(_("shape"), " × ".join(map(str, now.value.shape)), minor=True),
            Row(_("weights of this step"), weights),
            Row(_("parameters of this step, so far"), f"{now.parameters:,}, {so_far:,}", mark="count"),
            Row(_("FLOPs of this step's product"), f"{now.flops:,}", minor=True),
            Row(_("RMS of the tensor"), number(float(moments(now.value.ravel()).rms), 4), minor=True),
            Row(_("parameters: attention"), f"{total['attention']:,}", minor=True),
            Row(_("parameters: FFN"), f"{total['ffn']:,}", minor=True),
            Row(_("parameters: norms"), f"{total['norms']:,}", minor=True),
            Row(_("parameters of the layer"), f"{total['total']:,}", minor=True),
            Row(_("FLOPs of the layer's products"), f"{sum(step.flops for step in data.steps):,}", minor=True),
            Row(_("a token sees"), VISIBLE[data.sees], minor=True),
            Row(_("largest change of Y against the usual layer"), number(data.changed, 4), STREAM),
        ]


def _size(data: Walked, name: str) -> str:
    d, f, k = data.config.d_model, data.config.d_ff, data.config.head_dim
    queries, keys = data.config.n_heads * k, data.config.n_kv_heads * k
    sizes = {"w_q": (d, queries), "w_k": (d, keys), "w_v": (d, keys), "w_o": (queries, d), "w_in": (d, f)}
    sizes |= {"w_gate": (d, f), "w_up": (d, f), "w_down": (f, d), "w_out": (f, d)}
    return " × ".join(map(str, sizes.get(name, (d,))))
