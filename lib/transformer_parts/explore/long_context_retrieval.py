"""Measured retrieval of hidden numbers from long texts by a real model, as trained and by YaRN."""

import re
from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.long_context_retrieval import Retrieval, RetrievalView
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.runs import passkey, recorded

_CASE = re.compile(r"(?P<length>\d+) tokens, (?P<doors>\d+) doors, (?P<hops>\d+) hops, seed (?P<seed>\d+)")
KINDS = MappingProxyType(
    {
        "8 numbers": (8, 1, "one hop"),
        "1 number": (1, 1, "one hop"),
        "2 numbers": (2, 1, "one hop"),
        "4 numbers": (4, 1, "one hop"),
        "4 boxes, one hop": (4, 2, "one hop"),
        "4 boxes, two hops": (4, 2, "two hops"),
    }
)


class LongContextRetrieval(Panel[Retrieval]):
    """How likely SmolLM2 finds the numbers hidden in a text: measured once, drawn here."""

    alt = (
        "Left: the log-probability of a digit of each hidden number against its depth in the text; blue dots as"
        " trained, red squares by YaRN, hollow where another number of the text is likelier. Right: the means against"
        " the length of the text, grey beyond the trained length. The dotted line is guessing a digit."
    )
    still = "figures/long_context_retrieval.png"
    presets = MappingProxyType({"8 numbers in 4K": {"kind": "8 numbers", "length": 4096}})

    def make_controls(self):
        self.cases = {}
        for name, case in recorded.load(passkey.NAME).series.items():
            found = _CASE.fullmatch(name)
            self.cases.setdefault((int(found["doors"]), int(found["hops"])), {}).setdefault(
                int(found["length"]), []
            ).append(case)
        kinds = [name for name, (doors, hops, _) in KINDS.items() if (doors, hops) in self.cases]
        lengths = sorted(self.cases[8, 1])
        return {
            "kind": controls.choice("hidden", kinds, "8 numbers"),
            "length": controls.stops("length L", 4096, lengths),
        }

    def make_view(self):
        return RetrievalView()

    def couple(self, name):
        doors, hops, _ = KINDS[self.controls["kind"].value]
        lengths = sorted(self.cases[doors, hops])
        if self.controls["length"].value not in lengths:
            if name == "kind":
                self.controls["length"].value = 4096
            else:
                self.controls["kind"].value = "8 numbers"

    def compute(self, *, kind, length):
        doors, hops, question = KINDS[kind]
        by_length = self.cases[doors, hops]
        values = {name: _of(by_length[length], name, question) for name in passkey.METHODS}
        lengths = sorted(by_length)
        means = {
            name: np.array([_of(by_length[n], name, question)[0].mean() for n in lengths]) for name in passkey.METHODS
        }
        return Retrieval(
            depths=np.concatenate([case["depths"] for case in by_length[length]]),
            plain=values["plain"][0],
            yarn=values["yarn"][0],
            chosen=np.stack([values[name][1] for name in passkey.METHODS]),
            lengths=np.array(lengths),
            by_length=means,
            length=length,
            trained_length=8192,
            doors=doors,
        )

    def rows(self, data):
        count = len(data.depths)
        return [
            Row("mean ln p of a digit, as trained", number(data.plain.mean(), 3), theme.FIRST),
            Row("by YaRN, s = 2", number(data.yarn.mean(), 3), theme.SECOND),
            Row("guessing", number(np.log(0.1), 3), theme.FAINT),
            Row("right number likeliest of all in the text, as trained", f"{data.chosen[0].sum()} of {count}"),
            Row("by YaRN", f"{data.chosen[1].sum()} of {count}"),
            Row("by guessing", f"{count / data.doors:.1f} of {count}"),
        ]


def _of(cases, method: str, question: str):
    """Return the right numbers' log-probabilities and whether each is the likeliest, over all cases."""
    tables = [np.asarray(case[method][question]) for case in cases]
    right = np.concatenate([np.diag(table) for table in tables])
    first = np.concatenate([table.argmax(axis=-1) == np.arange(len(table)) for table in tables])
    return right, first
