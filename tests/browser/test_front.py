"""The front end's modules by themselves, in a blank page of Chromium."""

import base64
import io

import pytest
from PIL import Image

from transformer_parts.explore.front_end import _joined

pytestmark = pytest.mark.browser

# Pictures of one colour, by the key that is their grey; a screen over them, and the notes of its paintings.
STAGE = """
async ({pictures, options}) => {
    const {FrameStore, Screen, Speaker, nameSlider, lines} = window.front;
    document.body.innerHTML = "<canvas></canvas>";
    const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const store = new FrameStore({type: "image/png", ...options});
    const painted = [];
    const screen = new Screen(document.querySelector("canvas"), store, key => painted.push(key));
    const put = key => store.put(key, bytes(pictures[key]), `<tr><td>${key}</td></tr>`);
    const grey = () => screen.canvas.getContext("2d").getImageData(1, 1, 1, 1).data[0];
    const rest = () => new Promise(resolve => setTimeout(resolve, 60));
    Object.assign(window, {store, screen, painted, put, grey, rest});
}
"""


def png(grey: int) -> str:
    buffer = io.BytesIO()
    Image.new("L", (8, 6), grey).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.fixture(scope="module")
def blank(chromium):
    page = chromium.new_page()
    page.set_content("<!doctype html>")
    names = "FrameStore, Screen, Speaker, nameSlider, lines"
    module = _joined("frames.js", "names.js") + f"\nwindow.front = {{{names}}};"
    page.add_script_tag(type="module", content=module)
    page.wait_for_function("() => window.front")
    yield page
    page.close()


@pytest.fixture
def stage(blank):
    def set_up(**options):
        blank.evaluate(STAGE, {"pictures": {key: png(key) for key in range(0, 250, 10)}, "options": options})
        return blank.evaluate

    return set_up


def test_the_picture_under_the_hand_is_painted_at_once_when_it_is_decoded(stage):
    run = stage()
    assert run(
        "async () => { [10, 20, 30].forEach(put); screen.begin(10); await rest(); screen.show(20);"
        " return [painted, grey(), screen.canvas.hidden, store.numbers(20)]; }"
    ) == [[20], 20, False, "<tr><td>20</td></tr>"]


def test_until_it_is_decoded_the_nearest_on_the_way_is_shown_and_none_beyond(stage):
    run = stage()
    assert run(
        "async () => { [10, 30, 60].forEach(put); screen.begin(10); await rest(); screen.show(50);"
        " const first = [...painted]; put(50); await rest(); return [first, painted]; }"
    ) == [[30], [30, 50]]


def test_what_comes_late_does_not_take_the_place_of_what_is_wanted_now(stage):
    run = stage()
    painted = run(
        "async () => { [10, 90].forEach(put); screen.begin(10); await rest(); put(50); screen.show(50);"
        " screen.show(90); await rest(); return [painted, grey()]; }"
    )
    assert painted == [[90], 90]


def test_hidden_the_page_shows_what_was_wanted(stage):
    run = stage()
    assert run(
        "async () => { [10, 20].forEach(put); screen.begin(10); await rest(); screen.show(20); screen.hide();"
        " screen.show(20); return [painted, screen.canvas.hidden]; }"
    ) == [[20], True]


def test_bytes_and_bitmaps_are_bounded(stage):
    size = len(base64.b64decode(png(0)))
    run = stage(maxBytes=10 * size + 5, maxDecoded=4)
    kept = "async () => { const kept = []; for (let key = 0; key < 240; key += 10) kept.push(put(key)); "
    assert sum(run(kept + "window.kept = kept; return kept; }")) in (9, 10, 11)
    assert run("() => store.bytes") <= 10 * size + 5
    counts = run(
        "async () => { const counts = []; screen.begin(0); for (const key of [0, 20, 90, 40, 0, 80]) {"
        " screen.show(key); await rest(); counts.push(store.bitmaps.size); } return [counts, painted.at(-1)]; }"
    )
    assert max(counts[0]) == 4
    assert counts[1] == 80


def test_a_hand_that_has_gone_leaves_no_bitmap_and_comes_back(stage):
    run = stage()
    assert run(
        "async () => { [10, 20].forEach(put); screen.begin(10); await rest(); screen.end();"
        " const left = store.bitmaps.size; screen.begin(10); screen.show(20); await rest();"
        " return [left, grey(), store.frames.size]; }"
    ) == [0, 20, 2]


def test_a_broken_picture_is_dropped(stage):
    run = stage()
    assert run(
        "async () => { store.put(20, new Uint8Array([1, 2]), ''); put(30); screen.begin(10); screen.show(20);"
        " await rest(); return [painted, store.has(20), store.has(30)]; }"
    ) == [[], False, True]


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
