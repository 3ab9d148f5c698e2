"""Explorer of T5's buckets."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.relative_bias import AFTER, BEFORE, Buckets, T5BucketsView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row
from transformer_parts.language import _
from transformer_parts.maths import relative_bias

MAX_DISTANCES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_T5 = MappingProxyType({"num_buckets": 32, "max_distance": 128})


class T5Buckets(Panel[Buckets]):
    """Which relative positions share a bucket."""

    alt = _(
        "Above, a staircase on either side of the query: the bucket of each relative position j - i, blue for keys"
        " before the query, dashed red for keys after it; dotted lines stand at the maximum distance. Below, the"
        " buckets of one direction over a distance axis that doubles evenly: a grey band where each distance has a"
        " bucket of its own, then steps under a straight line. A gold diamond marks the chosen relative position, a"
        " gold bar all that share its bucket."
    )
    handles = MappingProxyType(
        {
            "offset": Handle(_("relative position"), ("offset",), "x"),
        }
    )
    presets = MappingProxyType(
        {
            _("T5's encoder"): {**_T5, "bidirectional": True, "offset": -50},
            _("T5's decoder"): {**_T5, "bidirectional": False, "offset": -50},
            _("Just before the last bucket"): {**_T5, "bidirectional": True, "offset": -90},
            _("In the last bucket"): {**_T5, "bidirectional": True, "offset": -91},
            _("By hand: 8 buckets, 16"): {"num_buckets": 8, "max_distance": 16, "bidirectional": False, "offset": -6},
        }
    )
    play = "offset"
    play_interval = 80

    def make_controls(self):
        return {
            "bidirectional": controls.choice(_("direction"), {_("bidirectional"): True, _("causal"): False}, True),
            "num_buckets": controls.integer(_("buckets"), 32, 4, 64, step=2),
            "max_distance": controls.stops(_("max distance M"), 128, MAX_DISTANCES),
            "offset": controls.integer(_("key − query"), -50, -256, 256),
        }

    def couple(self, name):
        # The distances must reach beyond the exact buckets of a direction; the marker stays in the picture.
        exact = self.controls["num_buckets"].value // (4 if self.controls["bidirectional"].value else 2)
        distance, offset = self.controls["max_distance"], self.controls["offset"]
        if distance.value <= exact:
            if name == "max_distance":
                most = distance.value - 1
                self.controls["num_buckets"].value = most * (4 if self.controls["bidirectional"].value else 2)
            else:
                distance.value = next(d for d in MAX_DISTANCES if d > exact)
        span = 2 * distance.value
        if offset.max != span:
            offset.value = min(max(offset.value, -span), span)
            offset.min, offset.max = -span, span

    def make_view(self):
        return T5BucketsView()

    def compute(self, *, bidirectional, num_buckets, max_distance, offset):
        sizes = {"bidirectional": bidirectional, "num_buckets": num_buckets, "max_distance": max_distance}
        offsets = np.arange(-2 * max_distance, 2 * max_distance + 1)
        distances = np.geomspace(0.9, max_distance, 200)
        return Buckets(
            offsets=offsets,
            buckets=relative_bias.t5_bucket(offsets, **sizes),
            starts=relative_bias.t5_bucket_starts(num_buckets, max_distance, bidirectional=bidirectional),
            curve=np.array([distances, relative_bias.t5_curve(distances, **sizes)]),
            offset=offset,
            bucket=int(relative_bias.t5_bucket(offset, **sizes)),
            bidirectional=bidirectional,
            num_buckets=num_buckets,
            max_distance=max_distance,
        )

    def rows(self, data):
        starts = data.starts
        used = len(np.unique(data.buckets))
        return [
            Row(_("bucket of j − i"), f"{data.offset}: {data.bucket}", theme.THIRD),
            Row(_("all j − i in this bucket"), _range(data), theme.THIRD),
            Row(_("buckets of a direction, exact ones"), f"{len(starts)}, {data.exact}", BEFORE),
            Row(_("exact distances"), _("0 to {last}", last=data.exact - 1), BEFORE),
            Row(_("then they begin at"), " ".join(map(str, starts[data.exact : data.exact + 15])), BEFORE),
            Row(_("the last one holds every distance from"), _("{first} on", first=starts[-1])),
            Row(_("keys after the query"), _after(data), AFTER),
            Row(_("buckets that occur"), _("{some} of {all}", some=used, all=data.num_buckets)),
        ]


def _range(data: Buckets) -> str:
    first, last = int(data.shared.min()), int(data.shared.max())
    if first == last:
        return str(first)
    if first == data.offsets[0]:
        return _("all up to {last}", last=last)
    if last == data.offsets[-1]:
        return _("{first} and all above", first=first)
    return _("{first} to {last}", first=first, last=last)


def _after(data: Buckets) -> str:
    n = len(data.starts)
    return (
        _("buckets {first} to {last}", first=n + 1, last=2 * n - 1) if data.bidirectional else _("bucket 0, and masked")
    )
