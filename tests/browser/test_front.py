"""The front end's modules by themselves, in a blank page of Chromium."""

import base64

import numpy as np
import pytest
from transformer_parts.draw.pixel_runs import difference, packed

from transformer_parts.explore.front_end import _joined

pytestmark = pytest.mark.browser

# Pictures by key; a screen over them, and the notes of its paintings.
STAGE = """
(pictures) => {
    const {FrameStore, Screen} = window.front;
    document.body.innerHTML = "<canvas></canvas>";
    const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const store = new FrameStore();
    const painted = [];
    const screen = new Screen(document.querySelector("canvas"), store, key => painted.push(key));
    let first = true;
    const put = key => {
        const size = first ? [8, 6] : undefined;
        first = false;
        return store.put(key, bytes(pictures[key]), {size, numbers: `<tr><td>${key}</td></tr>`, along: {red: 1}});
    };
    const shown = () => [...new Uint32Array(screen.canvas.getContext("2d").getImageData(0, 0, 8, 6).data.buffer)];
    const rest = () => new Promise(resolve => setTimeout(resolve, 60));
    Object.assign(window, {store, screen, painted, put, shown, rest});
}
"""

# A model of ipywidgets as far as it matters: what it has told itself, and the state that it was given.
MODEL = """
() => {
    class Model {
        sent = [];
        changes = {};
        state = {};
        set(changes) { Object.assign(this.changes, changes); }
        save_changes() { this.sync("patch", this, {attrs: this.changes}); this.changes = {}; }
        sync(method, model, {attrs}) { this.sent.push(attrs); }
        set_state(state) { Object.assign(this.state, state); return Promise.resolve(); }
    }
    window.model = new Model();
    window.late = false;
    window.told = [];
    window.stamp = 0;
    window.hold = new front.Hold(model, {
        stamp: () => stamp,
        tell: known => told.push({...model.state, ...model.changes, known}),
        isLate: () => late,
    });
    window.own = () => Object.keys(model).filter(key => !["sent", "changes", "state"].includes(key));
    window.rest = ms => new Promise(resolve => setTimeout(resolve, ms));
    window.move = value => { model.set({value}); model.state.value = value; model.save_changes(); };
}
"""


def picture(key: int) -> np.ndarray:
    """Return the picture of a key: one colour, and a line of another one at a place of its own."""
    pixels = np.full((6, 8), 0xFF000000 + 10, np.uint32)
    pixels[key % 6, 2:7] = 0xFF000000 + key
    return pixels


@pytest.fixture(scope="module")
def blank(chromium):
    page = chromium.new_page()
    page.set_content("<!doctype html>")
    names = "FrameStore, Hold, Screen, Speaker, nameSlider, lines"
    module = _joined("frames.js", "hold.js", "names.js") + f"\nwindow.front = {{{names}}};"
    page.add_script_tag(type="module", content=module)
    page.wait_for_function("() => window.front")
    yield page
    page.close()


@pytest.fixture
def stage(blank):
    """A screen; the picture that is put first must be that of 10."""
    first = picture(10)
    pictures = {
        key: base64.b64encode(packed(*difference(picture(key), None if key == 10 else first))).decode()
        for key in range(0, 250, 10)
    }
    blank.evaluate(STAGE, pictures)
    return blank.evaluate


@pytest.fixture
def held(blank):
    blank.evaluate(MODEL)
    return blank.evaluate


def test_the_picture_under_the_hand_is_painted_at_once_and_without_loss(stage):
    painted, shown, hidden, about = stage(
        "async () => { await Promise.all([10, 20, 30].map(put)); screen.begin(10); screen.show(20);"
        " return [painted, shown(), screen.canvas.hidden, store.about(20)]; }"
    )
    assert (painted, hidden) == ([20], False)
    assert (about["numbers"], about["along"]) == ("<tr><td>20</td></tr>", {"red": 1})
    assert shown == picture(20).ravel().tolist()


def test_pictures_do_not_shine_through_one_another(stage):
    pictures = stage(
        "async () => { await Promise.all([10, 20, 30, 40].map(put)); screen.begin(40); const found = [];"
        " for (const key of [20, 30, 10, 40]) { screen.show(key); found.push(shown()); } return found; }"
    )
    assert pictures == [picture(key).ravel().tolist() for key in (20, 30, 10, 40)]


def test_until_it_is_here_the_nearest_on_the_way_is_shown_and_none_beyond(stage):
    assert stage(
        "async () => { await Promise.all([10, 30, 60].map(put)); screen.begin(10); screen.show(50);"
        " const first = [...painted]; await put(50); return [first, painted]; }"
    ) == [[30], [30, 50]]


def test_what_comes_late_does_not_take_the_place_of_what_is_wanted_now(stage):
    painted = stage(
        "async () => { await Promise.all([10, 90].map(put)); screen.begin(10); const late = put(50); screen.show(50);"
        " screen.show(90); await late; return painted; }"
    )
    assert painted == [90]


def test_hidden_the_page_shows_what_was_wanted(stage):
    assert stage(
        "async () => { await Promise.all([10, 20].map(put)); screen.begin(10); screen.show(20); screen.hide();"
        " screen.show(20); return [painted, screen.canvas.hidden]; }"
    ) == [[20], True]


def test_what_was_under_way_when_the_store_was_cleared_does_not_come(stage):
    assert stage(
        "async () => { await put(10); const late = put(20); store.clear(); await late; await rest();"
        " screen.show(20); return [store.frames.size, painted, store.first]; }"
    ) == [0, [], None]


def test_a_value_is_told_when_the_hand_rests_and_once(held):
    assert held(
        "async () => { for (let i = 0; i < 5; i += 1) { move(i); await rest(20); }"
        " const before = [...told]; await rest(200); return [before, told, model.sent, model.changes]; }"
    ) == [[], [{"value": 4, "known": 0}], [], {}]


def test_what_waits_can_be_told_at_once(held):
    assert held(
        "async () => { hold.pay(); move(3); hold.pay(); const first = [...told]; await rest(200);"
        " return [first, told]; }"
    ) == [[{"value": 3, "known": 0}], [{"value": 3, "known": 0}]]


def test_with_a_value_goes_what_was_known_when_it_was_saved(held):
    assert held("() => { stamp = 3; move(1); stamp = 4; hold.pay(); return told; }") == [{"value": 1, "known": 3}]


def test_what_the_kernel_says_of_an_earlier_value_does_not_move_a_hand(held):
    assert held(
        "async () => { move(7); await model.set_state({value: 3, index: 2, max: 9}); const waiting = {...model.state};"
        " hold.pay(); late = true; await model.set_state({value: 4}); const unanswered = {...model.state};"
        " late = false; await model.set_state({value: 5, index: 6}); return [waiting, unanswered, model.state]; }"
    ) == [{"value": 7, "max": 9}, {"value": 7, "max": 9}, {"value": 5, "index": 6, "max": 9}]


def test_at_its_end_a_hold_tells_what_waits_and_leaves_no_trace(held):
    assert held("async () => { move(7); hold.end(); move(8); return [told, model.sent, own()]; }") == [
        [{"value": 7, "known": 0}],
        [{"value": 8}],
        [],
    ]


def test_of_two_holds_the_later_one_counts(held):
    assert held(
        "async () => { const others = []; const later = new front.Hold(model, {stamp: () => 0,"
        " tell: () => others.push(1), isLate: () => false});"
        " hold.end(); move(1); const before = [...model.sent]; later.end(); return [before, others, told, own()]; }"
    ) == [[], [1], [], []]


def test_the_speaker_says_what_has_changed(blank):
    said = blank.evaluate(
        """() => {
            const region = document.body.appendChild(document.createElement("div"));
            const table = (...rows) => "<table>" + rows.map(([a, b]) => `<tr><th>${a}</th><td>${b}</td></tr>`).join("")
                + "</table>";
            const speaker = new front.Speaker(region, table(["score", 1], ["mean", 2]));
            const said = [region.textContent];
            for (const [score, mean] of [[3, 2], [3, 2], [4, 5]]) {
                speaker.say(table(["score", score], ["mean", mean]));
                said.push(region.textContent);
            }
            return [said, region.getAttribute("aria-live"), region.getAttribute("role")];
        }"""
    )
    assert said == [["", "score 3", "score 3", "score 4; mean 5"], "polite", "status"]
