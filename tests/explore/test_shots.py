"""Pictures and tables as numbers of things that are sent once."""

import json
import re

import pytest

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.explore.readout import Row, table
from transformer_parts.explore.shots import Shots, as_text


class BarView(View[int]):
    size = (60, 40)

    def build(self):
        self.axes = theme.style(self.fig.add_axes((0.1, 0.1, 0.8, 0.8)), grid=False)
        self.limits(self.axes, x=(0, 10), y=(0, 30))
        self.bar = self.moving(self.axes.plot([5, 5], [0, 0], linewidth=8)[0])

    def update(self, data):
        self.bar.set_ydata([0, data])
        return self


@pytest.fixture
def shots():
    return Shots(BarView(), lambda data: table([Row("height", str(data), theme.KEY), Row("unit", "m")]))


def test_what_comes_again_has_the_number_it_had(shots):
    first, second = shots.shot(3), shots.shot(4)
    assert first.frame[0] == second.frame[0]
    assert first.frame[1] != second.frame[1]
    assert first.rows[0] != second.rows[0]
    assert first.rows[1] == second.rows[1]
    assert (shots.shot(3), shots.shot(4)) == (first, second)


def test_news_are_what_has_a_number_since_the_last_time(shots):
    shots.shot(3)
    first = shots.news()
    assert first | {"images": [], "boxes": [], "words": []} == shots.things()
    assert shots.news() == {}
    shots.shot(3)
    assert shots.news() == {}
    shots.shot(4)
    second = shots.news()
    assert set(second) == {"paths", "parts", "rows"}
    together = {kind: things + second.get(kind, []) for kind, things in first.items()}
    assert shots.things() == together | {"images": [], "boxes": [], "words": []}


def test_rows_are_those_of_the_table_without_styles_that_a_server_may_forbid(shots):
    shot = shots.shot(3)
    rows = [shots.things()["rows"][row] for row in shot.rows]
    wanted = re.findall("<tr>.*?</tr>", table([Row("height", "3", theme.KEY), Row("unit", "m")]))
    assert [row.replace(" data-style=", " style=") for row in rows] == wanted
    assert theme.KEY in rows[0]
    assert not any(" style=" in row for row in rows)


def test_a_page_that_knows_nothing_gets_everything(shots):
    first = shots.shot(3)
    shots.news()
    shots.shot(4)
    shots.begin()
    assert shots.things()["rows"] == []
    assert shots.shot(3) == first
    assert len(shots.news()["rows"]) == 2


def test_text_is_what_a_page_reads():
    assert as_text({"a": [1, (2, "é")]}) == b'{"a":[1,[2,"\xc3\xa9"]]}'
    assert json.loads(as_text({"a": 1.5})) == {"a": 1.5}
