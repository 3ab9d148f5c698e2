"""Explorer of a whole decoder's parameter budget."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ipywidgets import Dropdown

from transformer_parts.draw import theme
from transformer_parts.draw.budget import LOOKS, BudgetTallyView, Look, TwoTallies
from transformer_parts.explore import controls
from transformer_parts.explore.budget.decoders import CUSTOM, FILE, KINDS, MODELS, NOTES, kind_of
from transformer_parts.explore.budget.widths import VERDICTS
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, Term
from transformer_parts.language import _, join
from transformer_parts.maths import budget
from transformer_parts.models.configs import PUBLISHED
from transformer_parts.models.excerpt import load_excerpt

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "embedding": _("token embedding, W_E"),
        "positions": _("learned positions, W_P"),
        "attention": _("attention, W_QKVO"),
        "feed_forward": _("feed-forward, W_FFN"),
        "norms": _("norms, γ"),
        "head": _("head, W_U"),
    }
)


class BudgetTally(Panel[TwoTallies]):
    """A whole decoder's parameters by part, beside those of a published one or of a real file."""

    alt = _(
        "Above, the parameters of two decoders as one bar each, cut into embedding, positions, attention, feed-forward,"
        " norms and head. Below, a pair of bars for each part, full for the first decoder and pale for the second, with"
        " the ratio of the two on the right. The total of the second decoder is the unit of both scales."
    )
    presets = MappingProxyType(
        {
            _("By hand: d = 8"): {"model": "toy layer", "reference": "toy layer"},
            "Llama 2 7B": {"model": "Llama 2 7B", "reference": "Llama 3 8B"},
            "Llama 3 8B": {"model": "Llama 3 8B", "reference": "Llama 2 7B"},
            _("GPT-2 small"): {"model": "GPT-2 small", "reference": "SmolLM2 135M"},
            _("SmolLM2 135M and its file"): {"model": "SmolLM2 135M", "reference": FILE},
        }
    )
    primary = ("model", "n_layers", "d_model", "d_ff", "reference")
    handles = MappingProxyType(
        {
            "layers": Handle(_("end of the whole bar: layers"), ("n_layers",), "x"),
            "width": Handle(_("end of the feed-forward bar: its width"), ("d_ff",), "x"),
            "vocabulary": Handle(_("end of the embedding's bar: vocabulary"), ("vocab_size",), "x"),
        }
    )

    def make_controls(self):
        # Counted once: nothing on the page changes what the file holds.
        self._file = budget.count_tensors(load_excerpt().tensor_shapes)
        published = [entry.config for entry in PUBLISHED.values()]
        c = PUBLISHED["Llama 3 8B"].config
        return {
            "model": controls.choice(_("model"), [*MODELS.values(), CUSTOM], "Llama 3 8B"),
            "d_model": controls.stops("d", c.d_model, [8, 16, 32, *range(64, 8193, 64)]),
            "n_layers": controls.integer(_("layers"), c.n_layers, 1, 96),
            "n_heads": controls.integer(_("heads H"), c.n_heads, 1, 64),
            "n_kv_heads": controls.choice(_("kv heads G"), divisors(c.n_heads), c.n_kv_heads),
            "head_dim": controls.stops(_("head_dim K"), c.head_dim, [4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256]),
            "ffn": controls.choice(
                _("feed-forward"), {_("gated, 3 matrices"): "gated", _("plain, 2 matrices"): "mlp"}, c.ffn
            ),
            "d_ff": controls.stops(_("d_ff, its width"), c.d_ff, [8, 16, 24, 32, 64, 128, *range(256, 32769, 256)]),
            "vocab_size": controls.stops(
                _("vocabulary V"), c.vocab_size, [*range(0, 262145, 4096), *(c.vocab_size for c in published)]
            ),
            "tied": controls.switch(_("head tied to the embedding"), c.tied),
            "kind": controls.choice(_("norms, biases"), list(KINDS), kind_of(c)),
            "reference": controls.choice(_("compare with"), [*MODELS.values(), FILE], "Llama 2 7B"),
        }

    def make_view(self):
        return BudgetTallyView()

    def couple(self, name):
        if name == "model":
            if (model := self.controls["model"].value) != CUSTOM:
                self._load(PUBLISHED[model].config)
        elif name != "reference":
            if name == "n_heads":
                self._couple_kv_heads()
            self.controls["model"].value = self._name_of(self.state)

    def _couple_kv_heads(self) -> None:
        """Keep one kv head for each query head, or else the present number, or the nearest below that divides."""
        menu, heads = self.controls["n_kv_heads"], self.controls["n_heads"].value
        wanted = heads if menu.value == menu.options[-1] else menu.value
        offer(menu, divisors(heads), max(g for g in divisors(heads) if g <= wanted))

    def _load(self, config: budget.DecoderConfig) -> None:
        offer(self.controls["n_kv_heads"], divisors(config.n_heads), config.n_kv_heads)
        for name, control in self.controls.items():
            if hasattr(config, name):
                control.value = getattr(config, name)
        self.controls["kind"].value = kind_of(config)

    @staticmethod
    def _name_of(state: Mapping[str, object]) -> str:
        config = _config(**state)
        same = [name for name, entry in PUBLISHED.items() if entry.config == config]
        return state["model"] if state["model"] in same else (*same, CUSTOM)[0]

    def compute(self, *, model, reference, **sizes):
        config = _config(**sizes)
        entry = PUBLISHED.get(model)
        rule = entry.width_rule if entry else None
        return TwoTallies(
            model=budget.count(config).model,
            reference=self._file if reference == FILE else budget.count(PUBLISHED[reference].config).model,
            model_name=MODELS.get(model, CUSTOM),
            reference_name=MODELS.get(reference, FILE),
            formulas=budget.formulas(config),
            tied=config.tied,
            d_model=config.d_model,
            attention_width=config.n_heads * config.head_dim,
            match=budget.match_budget(
                config.ffn, config.d_model, config.d_ff, multiple_of=rule.multiple_of if rule else 1
            ),
            flops=budget.flops_per_token(config, 1).weights,
            cache_bytes=budget.kv_cache_bytes(config, 1),
            told=entry.told if entry else "",
            note=NOTES.get(model, ""),
        )

    def rows(self, data):
        shares = data.model.shares
        rows = [
            Row(
                join(": ", [_NAMES[part], _("tied") if part == "head" and data.tied else data.formulas[part]]),
                f"{value:,} ({100 * shares[part]:.2f} %)",
                _swatch(look),
                minor=part in ("positions", "norms") or not value,
                mark=part,
            )
            for (part, value), look in zip(data.model.parts.items(), LOOKS.values(), strict=True)
        ]
        total = _("total, Σ (published as {count})", count=data.told) if data.told else _("total, Σ")
        rows += [
            Row(total, f"{data.model.total:,}"),
            Row(_("without embedding, positions and head"), f"{data.model.non_embedding:,}", minor=True),
            Row(_("total of {model}", model=data.reference_name), f"{data.reference.total:,}", minor=True),
            Row(
                _("parts that are equal in both"),
                _("{n} of {all}", n=_equal_parts(data), all=len(LOOKS)),
                minor=True,
            ),
            Row(
                _("feed-forward budget matched to plain 4d?"),
                _("{verdict} ({ratio:.4f})", verdict=VERDICTS[data.match.verdict], ratio=data.match.ratio),
                minor=True,
            ),
            Row(
                _("channels of all query heads H·K, beside d"),
                f"{data.attention_width:,}, {data.d_model:,}",
                minor=True,
            ),
            Row(_("operations per token, products with weights"), f"{data.flops:,}", minor=True),
            Row(_("KV cache per token, 16 bits"), _("{count:,} bytes", count=data.cache_bytes), minor=True),
        ]
        return rows + ([Row(data.note, "", minor=True)] if data.note else [])

    def formula(self, data):
        terms = [Term(f"Σ = {_short(data.model.total)} = ")]
        for part, count in data.model.parts.items():
            if count:
                plus = [Term(" + ")] if len(terms) > 1 else []
                terms += [*plus, Term(_short(count), LOOKS[part].colour, part)]
        return terms


def _short(count: int) -> str:
    """Return a count of parameters in three digits."""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return str(count)


def divisors(heads: int) -> tuple[int, ...]:
    """Return the numbers of kv heads that a number of query heads allows."""
    return tuple(g for g in range(1, heads + 1) if heads % g == 0)


def offer(menu: Dropdown, options: Sequence[int], value: int) -> None:
    """Give a menu other options and one of them as its value, in one message to the page."""
    with menu.hold_sync():
        if tuple(menu.options) != tuple(options):
            menu.options = tuple(options)
        menu.value = value


def _config(*, kind: str, model: str = "", reference: str = "", **sizes) -> budget.DecoderConfig:
    return budget.DecoderConfig(**sizes, **KINDS[kind])


def _equal_parts(data: TwoTallies) -> int:
    return sum(
        one == other for one, other in zip(data.model.parts.values(), data.reference.parts.values(), strict=True)
    )


def _swatch(look: Look) -> str:
    """Return a CSS background with a part's colour and hatching."""
    angles = {"": (), "/": (135,), "x": (135, 45)}[look.hatch[:1]]
    stripes = [f"repeating-linear-gradient({angle}deg, transparent 0 3px, {theme.PAPER} 3px 4px)" for angle in angles]
    return ", ".join([*stripes, look.colour])
