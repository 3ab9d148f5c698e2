"""Explorer of what a misused cache does to a head of a real model."""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.cache import CacheHeadsView, HeadWeights
from transformer_parts.explore import controls
from transformer_parts.explore.cache.steps import WAYS, idle_controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import values_of
from transformer_parts.explore.readout import Row
from transformer_parts.language import _
from transformer_parts.maths.cache import FAULTS, Chunk, Glance, head_run, head_whole, misplaced
from transformer_parts.models.excerpt import load_excerpt

#: What a head of the excerpt does, in words.
KINDS = MappingProxyType({"previous token": _("previous token"), "induction": _("induction")})


class CacheHeads(Panel[HeadWeights]):
    """A head of SmolLM2-135M decodes a passage; its attention weights, right and wrong, token by token."""

    alt = _(
        "Above: attention weights of the newest token over the tokens in the cache, of one head of SmolLM2: blue bars"
        " upwards for the right ones, red bars downwards for those of the chosen way. Below: the share of attention"
        " that goes to the wrong tokens, at every step so far, from 0 to 1."
    )
    presets = MappingProxyType(
        {
            _("Previous token, restart at 0"): {"head": (16, 0), "fault": "restart", "prompt": 24, "step": 8},
            _("Off by one, the first step"): {"head": (16, 0), "fault": "off by one", "prompt": 24, "step": 1},
            _("Off by one, ten steps on"): {"head": (16, 0), "fault": "off by one", "prompt": 24, "step": 10},
            _("Induction, rotated again"): {"head": (17, 5), "fault": "rotated again", "prompt": 24, "step": 23},
            _("Base grows"): {
                "head": (11, 1), "fault": "base changed, rotated keys", "prompt": 24, "step": 20, "trained_length": 24,
            },
        }
    )  # fmt: skip
    play = "step"
    primary = ("head", "fault", "step", "prompt")
    handles = MappingProxyType(
        {
            "step": Handle(_("newest token"), ("step",), "x"),
            "prompt": Handle(_("end of the prompt"), ("prompt",), "x"),
        }
    )
    play_interval = 300

    def __init__(self, *, language: str | None = None):
        self.excerpt = load_excerpt()
        self.tokens = tuple(text.strip() for text in self.excerpt.token_texts[: CacheHeadsView.slots])
        # The last run of each kind: a step shows another moment of the same run.
        self._runs: dict[str, tuple[tuple, tuple[Glance, ...]]] = {}
        super().__init__(language=language)

    def make_controls(self):
        excerpt = self.excerpt
        heads = {
            _("layer {layer} head {head}, {kind}", layer=head.layer, head=head.head, kind=KINDS[head.kind]): (
                head.layer,
                head.head,
            )
            for head in excerpt.telling_heads
        }
        known = tuple(heads.values())
        heads |= {
            _("layer {layer} head {head}", layer=layer, head=head): (layer, head)
            for layer in excerpt.qk_layers
            for head in range(excerpt.n_heads)
            if (layer, head) not in known
        }
        # Padding is a matter of a batch: here there is one row.
        ways = {label: fault for label, fault in WAYS.items() if "padding" not in fault}
        return {
            "head": controls.choice(_("head"), heads, (16, 0)),
            "fault": controls.choice(_("way"), ways, "restart"),
            "step": controls.integer(_("step"), 8, 0, len(self.tokens) - 24),
            "prompt": controls.integer(_("prompt"), 24, 8, 40),
            "trained_length": controls.integer(_("trained length"), 24, 8, len(self.tokens)),
        }

    def make_view(self):
        return CacheHeadsView()

    def track(self, handle):
        values = values_of(self.controls[handle])
        if handle == "step":
            return self.view.at(self.view.share_axes, self.state["prompt"] + values - 1, 0)
        return self.view.at(self.view.share_axes, values - 0.5, 1)

    def idle(self, state):
        return idle_controls(state["fault"])

    def couple(self, name):
        if name == "prompt":
            self.controls["step"].max = len(self.tokens) - self.controls["prompt"].value

    def compute(self, *, head, fault, step, prompt, trained_length):
        way = FAULTS[fault]
        query, key = (part(*head)[: len(self.tokens)] for part in (self.excerpt.query, self.excerpt.key))
        settings = {"rope_base": self.excerpt.rope_base, "layout": self.excerpt.layout}
        trained = trained_length if way.scaling != "none" else None
        run = self._cached(
            "run",
            (head, fault, prompt, trained),
            lambda: head_run(query, key, prompt, fault, trained_length=trained or 1, settings=settings),
        )
        trained = trained if way.dynamic else None
        right = self._cached(
            "right",
            (head, prompt, trained),
            lambda: head_whole(query, key, prompt, trained_length=trained, settings=settings),
        )
        shares = [misplaced(*(glance.weights[0] for glance in pair)) for pair in zip(run, right, strict=True)]
        held = prompt + step
        chunk = Chunk(held - 1, 1, 0, 1, 1) if step else Chunk(0, held, 0, 1, 1)
        return HeadWeights(
            prompt=prompt,
            weights=run[step].weights[0],
            right_weights=right[step].weights[0],
            misplaced=np.array(shares[: step + 1]),
            tokens=self.tokens[:held],
            position=int(way.place(chunk)[-1]),
            right_position=held - 1,
            slowest=float(way.turn(held, trained_length, self.excerpt.head_dim, settings)["inv_freq"][-1]),
        )

    def _cached(self, kind: str, key: tuple, run: Callable[[], tuple[Glance, ...]]) -> tuple[Glance, ...]:
        if self._runs.get(kind, ((), None))[0] != key:
            self._runs[kind] = key, run()
        return self._runs[kind][1]

    def rows(self, data):
        worst = int(data.misplaced.argmax())
        return [
            Row(_("newest token"), repr(data.tokens[-1])),
            Row(_("attends most to, rightly"), _most(data.right_weights, data.tokens), theme.FIRST, mark="right"),
            Row(_("attends most to, here"), _most(data.weights, data.tokens), theme.SECOND, mark="here"),
            Row(_("attention on the wrong tokens"), f"{100 * data.misplaced[-1]:.2f} %", theme.SECOND, mark="share"),
            Row(
                _("the most so far"),
                _("{percent:.2f} % at step {step}", percent=100 * data.misplaced[worst], step=worst),
                theme.SECOND,
                minor=True,
            ),
            Row(_("mean over the steps so far"), f"{100 * data.misplaced.mean():.2f} %", minor=True),
            Row(_("position, right and used"), f"{data.right_position}, {data.position}", minor=True),
            Row(_("slowest pair, rad per position"), f"{data.slowest:.4e}", minor=True),
        ]


def _most(weights: np.ndarray, tokens: tuple[str, ...]) -> str:
    slot = int(weights.argmax())
    return f"{slot} {tokens[slot]!r}: {weights[slot]:.4f}"
