"""Measured retrieval of hidden numbers from long texts by a real model, as trained and by YaRN."""

import re
from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.long_context import LongContextRetrievalView, Retrieval
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.runs import passkey, recorded

_CASE = re.compile(r"(?P<length>\d+) tokens, (?P<doors>\d+) doors, (?P<hops>\d+) hops, seed (?P<seed>\d+)")
KINDS = MappingProxyType(
    {
        _("8 numbers"): (8, 1, "one hop"),
        _("1 number"): (1, 1, "one hop"),
        _("2 numbers"): (2, 1, "one hop"),
        _("4 numbers"): (4, 1, "one hop"),
        _("4 boxes, one hop"): (4, 2, "one hop"),
        _("4 boxes, two hops"): (4, 2, "two hops"),
    }
)


class LongContextRetrieval(Panel[Retrieval]):
    """How likely SmolLM2 finds the numbers hidden in a text: measured once, drawn here."""

    alt = _(
        "Left: the log-probability of a digit of each hidden number against its depth in the text; blue dots as"
        " trained, red squares by YaRN, hollow where another number of the text is likelier. Right: the means against"
        " the length of the text, grey beyond the configured length, and dashed those of the other numbers in the right"
        " one's place. The dotted line is guessing a digit."
    )
    presets = MappingProxyType(
        {
            _("8 numbers in 1K"): {"kind": "8 numbers", "length": 1024},
            _("8 numbers in 4K"): {"kind": "8 numbers", "length": 4096},
            _("8 numbers in 12K"): {"kind": "8 numbers", "length": 12288},
            _("one hop"): {"kind": "4 boxes, one hop", "length": 2048},
            _("two hops"): {"kind": "4 boxes, two hops", "length": 2048},
        }
    )

    handles = MappingProxyType({"length": Handle(_("line of the length"), ("length",), "x")})

    def make_controls(self):
        self.cases = {}
        recording = recorded.load(passkey.NAME)
        self.trained_length = recording.arguments["trained_length"]
        for name, case in recording.series.items():
            found = _CASE.fullmatch(name)
            self.cases.setdefault((int(found["doors"]), int(found["hops"])), {}).setdefault(
                int(found["length"]), []
            ).append(case)
        # A measurement that was stopped lacks the longer texts, and with them some kinds.
        kinds = [name for name, (doors, hops, _question) in KINDS.items() if (doors, hops) in self.cases]
        lengths = sorted(self.cases[8, 1])
        self.presets = {
            label: values
            for label, values in type(self).presets.items()
            if values["kind"] in kinds and values["length"] in self._lengths(values["kind"])
        }
        return {
            "kind": controls.choice(_("hidden"), kinds, "8 numbers"),
            "length": controls.stops(_("length L"), max(n for n in lengths if n <= 4096), lengths),
        }

    def _lengths(self, kind: str) -> list[int]:
        doors, hops, _question = KINDS[kind]
        return sorted(self.cases[doors, hops])

    def make_view(self):
        return LongContextRetrievalView()

    def couple(self, name):
        lengths = self._lengths(self.controls["kind"].value)
        if self.controls["length"].value not in lengths:
            if name == "kind":
                self.controls["length"].value = max(lengths)
            else:
                self.controls["kind"].value = "8 numbers"

    def compute(self, *, kind, length):
        doors, hops, question = KINDS[kind]
        by_length = self.cases[doors, hops]
        values = {name: _of(by_length[length], name, question) for name in passkey.METHODS}
        lengths = sorted(by_length)
        means, others = (
            {name: np.array([_of(by_length[n], name, question)[i].mean() for n in lengths]) for name in passkey.METHODS}
            for i in (0, 1)
        )
        return Retrieval(
            depths=np.concatenate([case["depths"] for case in by_length[length]]),
            plain=values["plain"][0],
            yarn=values["yarn"][0],
            others=np.stack([values[name][1] for name in passkey.METHODS]),
            chosen=np.stack([values[name][2] for name in passkey.METHODS]),
            lengths=np.array(lengths),
            by_length=means,
            others_by_length=others,
            length=length,
            trained_length=self.trained_length,
            doors=doors,
        )

    def rows(self, data):
        count = len(data.depths)
        return [
            Row(_("mean ln p of a digit: right number, other numbers"), ""),
            Row(_("as trained"), self._means(data.plain, data.others[0]), theme.FIRST, mark="plain"),
            Row(_("by YaRN, s = 2"), self._means(data.yarn, data.others[1]), theme.SECOND, mark="yarn"),
            Row(_("guessing"), number(np.log(0.1), 3), theme.FAINT, minor=True),
            Row(
                _("right number likeliest of all in the text, as trained"),
                _("{some} of {all}", some=data.chosen[0].sum(), all=count),
            ),
            Row(_("by YaRN"), _("{some} of {all}", some=data.chosen[1].sum(), all=count), minor=True),
            Row(_("by guessing"), _("{some:.1f} of {all}", some=count / data.doors, all=count), minor=True),
        ]

    def _means(self, right, others) -> str:
        others = "—" if np.isnan(others).any() else number(others.mean(), 3)
        return f"{number(right.mean(), 3)}, {others}"


def _of(cases, method: str, question: str):
    """Return the log-probabilities of the right numbers and of the others, and whether the right is the likeliest."""
    tables = [np.asarray(case[method][question]) for case in cases]
    right = np.concatenate([np.diag(table) for table in tables])
    others = np.concatenate([_others(table) for table in tables])
    first = np.concatenate([table.argmax(axis=-1) == np.arange(len(table)) for table in tables])
    return right, others, first


def _others(table):
    """Return the mean of each row without its diagonal; NaN in a table of one number."""
    count = len(table)
    return np.full(1, np.nan) if count == 1 else (table.sum(axis=-1) - np.diag(table)) / (count - 1)
