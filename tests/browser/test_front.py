"""The page's modules by themselves, in a blank page of Chromium."""

import numpy as np
import pytest

from transformer_parts.explore.front_end import PAGE, joined

pytestmark = pytest.mark.browser

NAMES = "Control, Explorer, Pack, Painter, Session, Store, inDark, nearestInTrack, nearestOnWay, short"
REST, LATE, CLOSE, QUIET = 100, 800, 1000, 500  # milliseconds: see session.js and explorer.js

# A square of one recorded quarter of the picture's width, red, green and half blue; the paper; an image of 2 × 2 cells.
# A picture has 20 × 10 CSS pixels, of two recorded pixels each.
DRAWINGS = {
    "paths": ["m0 0l80 0 0 80-80 0z", "m0 0l320 0 0 160-320 0z", "m0 0l320 0", "m0 0l160 0 0 160-160 0z"],
    "styles": [
        ["#ff0000", "", 0, [], 0, "butt", "miter", -1],
        ["#00ff00", "", 0, [], 0, "butt", "miter", -1],
        ["", "#0000ff", 32, [], 0, "butt", "miter", -1],
        ["", "#0000ff", 32, [32, 32], 0, "butt", "miter", 3],
        ["#0000ff80", "", 0, [], 0, "butt", "miter", -1],
        ["#ff0000", "#00ff00", 32, [], 0, "butt", "miter", -1],
    ],
    "images": [["#$%#", [10, 2], [4, 8], ["#ff0000ff", "#00ff00ff", "#0000ffff"]]],
    "parts": [
        [[1, 1, 0, 0]],  # 0: green all over
        [[0, 0, 0, 0]],  # 1: a red square at the upper left
        [[0, 0, 80, 0, 240, 80]],  # 2: two red squares
        [[2, 2, 0, 80]],  # 3: a blue line across the middle, four recorded pixels wide
        [[2, 3, 0, 80]],  # 4: the same dashed, its right half clipped
        [[-1, 0, 0, 0, 40, 20]],  # 5: the image all over
        [[0, 4, 0, 0]],  # 6: a square that shines through
        [],  # 7: nothing
        [[3, 5, 0, 0]],  # 8: filled and stroked
    ],
    "rows": ["<tr><th>height</th><td data-style='color: rgb(1, 2, 3)'>1</td></tr>", "<tr><th>unit</th><td>m</td></tr>"],
}
SIZE = {"width": 20, "height": 10, "pixelRatio": 2}
GREEN, RED, BLUE, WHITE = (0, 255, 0), (255, 0, 0), (0, 0, 255), (255, 255, 255)

# What several tests use: a canvas with a painter, and its pixels.
TOOLS = """
(drawings) => {
    const canvas = document.createElement("canvas");
    document.body.replaceChildren(canvas);
    const paint = (frame, {width, ratio = 1, dark = false, size} = {}) => {
        window.painter = new front.Painter(canvas, drawings, size);
        painter.fit(width, ratio);
        painter.setDark(dark);
        painter.paint(frame);
        return seen();
    };
    const seen = () => {
        const {width, height} = canvas;
        return [width, height, [...canvas.getContext("2d").getImageData(0, 0, width, height).data]];
    };
    Object.assign(window, {canvas, paint, seen, wait: ms => new Promise(resolve => setTimeout(resolve, ms))});
}
"""


@pytest.fixture(scope="module")
def blank(chromium):
    page = chromium.new_page()
    page.set_content("<!doctype html>")
    page.add_script_tag(type="module", content=f"{joined(*PAGE)}\nwindow.front = {{{NAMES}}};")
    page.wait_for_function("() => window.front")
    yield page
    page.close()


@pytest.fixture
def page(blank):
    """The blank page, which must not complain."""
    errors = []

    def note(error):
        errors.append(error)

    blank.on("pageerror", note)
    blank.mouse.move(1000, 700)
    blank.evaluate(TOOLS, DRAWINGS)
    yield blank
    blank.remove_listener("pageerror", note)
    assert errors == []


@pytest.fixture
def js(page):
    return page.evaluate


@pytest.fixture
def paint(js):
    """Return what is seen of a frame, (height, width, 3), once it is painted."""

    def paint(background, moving, size=SIZE, **options):
        width, height, data = js(
            "([frame, options]) => paint(frame, options)", [[background, moving], options | {"size": size}]
        )
        return np.array(data).reshape(height, width, 4)[..., :3]

    return paint


# ---------------------------------------------------------------- drawing.js


@pytest.mark.parametrize(("width", "ratio"), [(20, 1), (20, 2), (40, 1), (30, 2), (20, 1.5)])
def test_a_picture_has_the_pixels_of_its_place_on_the_screen(paint, width, ratio):
    picture = paint([0], [1], width=width, ratio=ratio)
    scale = width * ratio / 20
    assert picture.shape[:2] == (round(10 * scale), round(20 * scale))
    side = 5 * scale
    for y, x in np.ndindex(picture.shape[:2]):
        inside = max(x, y) + 1 <= side
        if inside or max(x, y) >= side:  # but for the pixels across an edge
            assert tuple(picture[y, x]) == (RED if inside else GREEN), (x, y)


def test_without_a_width_a_picture_has_its_own(js):
    assert js(
        "size => { const p = new front.Painter(canvas, {}, size); p.fit(0, 3); return [canvas.width, canvas.height]; }",
        SIZE,
    ) == [
        60,
        30,
    ]


def test_fit_and_dark_say_whether_anything_changes(js):
    assert js(
        "size => { const p = new front.Painter(canvas, {}, size);"
        " return [p.fit(40, 1), p.fit(40, 1), p.fit(20, 2), p.fit(40, 2), p.setDark(false), p.setDark(true), "
        "p.setDark(true)]; }",
        SIZE,
    ) == [True, False, False, True, False, True, False]


def test_a_path_is_drawn_at_each_of_its_places(paint):
    picture = paint([0], [2])
    wanted = np.full((10, 20, 3), GREEN)
    wanted[:5, 5:10] = wanted[5:, 15:] = RED
    assert np.array_equal(picture, wanted)


def test_lines_have_widths_dashes_and_clips(paint):
    picture = paint([0], [3])
    assert (picture[4:6] == BLUE).all()
    assert (picture[[0, 1, 2, 3, 6, 7, 8, 9]] == GREEN).all()
    dashed = paint([0], [4])[4]
    assert [tuple(pixel) for pixel in dashed] == ([BLUE] * 2 + [GREEN] * 2) * 2 + [BLUE] * 2 + [GREEN] * 10


def test_a_path_is_filled_and_then_stroked(paint):
    picture = paint([7], [8])
    assert tuple(picture[4, 4]) == RED
    assert tuple(picture[0, 0]) == tuple(picture[4, 10]) == GREEN
    assert tuple(picture[4, 12]) == WHITE


def test_what_follows_lies_over_what_was_before(paint):
    assert tuple(paint([1, 0], [])[0, 0]) == GREEN
    assert tuple(paint([0, 1], [])[0, 0]) == RED
    assert tuple(paint([1], [0])[0, 0]) == GREEN
    assert tuple(paint([], [1, 3])[4, 0]) == BLUE
    through = paint([], [6])[0, 0]
    assert np.abs(through - np.array((127, 127, 255))).max() <= 1


def test_frames_do_not_shine_through_one_another(js, paint):
    paint([0], [6])
    for frame, first in (([[0], [1]], RED), ([[0], [7]], GREEN), ([[1], []], RED), ([[7], []], WHITE)):
        _w, _h, data = js("frame => { painter.paint(frame); return seen(); }", frame)
        assert tuple(data[:3]) == first


def test_a_background_is_drawn_once_for_as_long_as_it_stays(js, paint):
    paint([0, 1], [3])
    drawn = js(
        "() => { const drawn = []; const draw = painter.draw.bind(painter);"
        " painter.draw = (context, part) => { drawn.push(part); draw(context, part); };"
        " const frames = [[[0, 1], [2]], [[0, 1], [3]], [[0], [3]]]; "
        "for (const frame of frames) painter.paint(frame);"
        " painter.fit(40, 1); painter.paint(frames[2]); painter.setDark(true); painter.paint(frames[2]);"
        " painter.begin({...painter.drawings}); painter.paint(frames[2]); return drawn; }"
    )
    assert drawn == [2, 3, 0, 3, 0, 3, 0, 3, 0, 3]


def test_an_image_has_its_cells_at_every_size(paint):
    for width in (20, 40):
        picture, scale = paint([], [5], width=width), width // 20
        rows, columns = np.arange(10 * scale), np.arange(20 * scale)
        below, right = (rows >= 10 * scale / 3)[:, None], (columns >= 20 * scale * 10 / 12)[None]
        # The first cell and the last are of one colour.
        wanted = np.where((below == right)[..., None], RED, np.where(right[..., None], GREEN, BLUE))
        assert (picture != wanted).any(axis=-1).mean() < 0.12
        assert tuple(picture[0, 0]) == tuple(picture[-1, -1]) == RED
        assert (tuple(picture[0, -1]), tuple(picture[-1, 0])) == (GREEN, BLUE)


def test_few_images_and_outlines_are_kept(js):
    assert js(
        """size => {
            const images = Array.from({length: 30}, (_, i) => ["#", [1], [1], [`#0000${(20 + i).toString(16)}ff`]]);
            const parts = images.map((_, i) => [[-1, i, 0, 0, 40, 20]]);
            const painter = new front.Painter(canvas, {paths: [], styles: [], images, parts}, size);
            const blues = [0, 29, 0].map(i => {
                for (let j = 0; j < 30; j += 1) painter.paint([[], [j]]);
                painter.paint([[], [i]]);
                return seen()[2][2];
            });
            return [blues, painter.pictures.size <= 8];
        }""",
        SIZE,
    ) == [[20, 49, 20], True]


def test_new_drawings_take_the_place_of_the_old_with_the_same_numbers(js, paint):
    paint([0], [1])
    assert js(
        "() => { const {drawings} = painter;"
        " painter.begin({...drawings, paths: ['m0 0l40 0 0 40-40 0z'], styles: [['#0000ff', "
        "...drawings.styles[0].slice(1)]],"
        " parts: [[], [[0, 0, 0, 0]]]}); painter.paint([[0], [1]]); const {2: data} = seen();"
        " return [data.slice(0, 3), data.slice(4 * 4, 4 * 4 + 3)]; }"
    ) == [list(BLUE), list(WHITE)]


def test_dark_colours_are_those_of_the_css_filter(js, rng):
    colours = [f"#{number:06x}" for number in rng.integers(0, 1 << 24, 300)]
    colours += ["#000000", "#ffffff", "#ff0000", "#00ff00", "#0000ff", "#808080", "#1f77b4"]
    ours, filtered = js(
        """colours => {
            const hex = name => [1, 3, 5].map(at => parseInt(name.slice(at, at + 2), 16));
            const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
            const context = canvas.getContext("2d");
            context.filter = "invert(.933) hue-rotate(180deg)";
            const filtered = colours.map(colour => {
                context.fillStyle = colour;
                context.fillRect(0, 0, 1, 1);
                return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
            });
            return [colours.map(colour => hex(front.inDark(colour))), filtered];
        }""",
        colours,
    )
    assert np.abs(np.array(ours) - filtered).max() <= 3  # the filter rounds twice, to eight bits each time
    assert np.abs(np.array(ours) - filtered).mean() < 1
    assert js("() => front.inDark('#00000080')") == "#eeeeee80"
    assert js("() => front.inDark('#ffffff')") == "#111111"


def test_in_the_dark_paper_fills_lines_and_images_are_turned_over(paint):
    paper, square, line, image = (paint([], [part], dark=True) for part in (7, 1, 3, 5))
    assert (paper == 0x11).all()
    dark = {RED: (255, 118, 118), BLUE: (180, 180, 255), GREEN: (0, 124, 0)}
    for picture, x, y, colour in ((square, 0, 0, RED), (line, 0, 4, BLUE), (image, 0, 0, RED), (image, 0, 9, BLUE)):
        red, green, blue = picture[y, x]
        brightest = np.argmax([red, green, blue])
        assert brightest == np.argmax(colour), (red, green, blue, dark)
        assert tuple(picture[y, x]) != colour


# ---------------------------------------------------------------- controls.js

CONTROLS = {
    "slider": {
        "name": "height",
        "label": "height",
        "kind": "slider",
        "low": 2,
        "high": 2000,
        "step": 2,
        "hidden": False,
    },
    "list": {"name": "extra", "label": "extra", "kind": "slider", "labels": ["0.0", "0.5", "1.0"], "hidden": False},
    "menu": {"name": "kind", "label": "kind", "kind": "menu", "labels": ["one", "two", "three"], "hidden": False},
    "switch": {"name": "red", "label": "red", "kind": "switch", "hidden": False},
}


@pytest.fixture
def control(js):
    def control(kind, code="control => 0", options=None):
        return js(
            f"""([description, options]) => {{
                const control = window.control = new front.Control(description, "an-id", options ?? {{}});
                document.body.replaceChildren(control.element);
                return ({code})(control);
            }}""",
            [CONTROLS[kind], options],
        )

    return control


@pytest.mark.parametrize(
    ("kind", "role", "puts", "texts"),
    [
        ("slider", "slider", [2, 1000, 2000], ["2", "1,000", "2,000"]),
        ("list", "slider", [0, 2], ["0.0", "1.0"]),
        ("menu", "combobox", [0, 2], None),
        ("switch", "checkbox", [0, 1], None),
    ],
)
def test_a_control_has_its_label_its_kind_and_its_value(page, control, kind, role, puts, texts):
    control(kind)
    found = page.get_by_role(role, name=CONTROLS[kind]["label"], exact=True)
    assert found.count() == 1
    assert found.get_attribute("id") == "an-id"
    assert found.get_attribute("data-control") == CONTROLS[kind]["name"]
    for number, at in enumerate(puts):
        page.evaluate("at => control.put(at)", at)
        assert page.evaluate("() => control.at") == at
        if texts:
            assert found.get_attribute("aria-valuetext") == texts[number]
            assert page.locator(".tp-value").inner_text() == texts[number]
    if kind == "switch":
        assert found.is_checked()
    if kind == "menu":
        assert found.evaluate("menu => menu.selectedOptions[0].text") == "three"


def test_a_slider_has_its_range(page, control):
    control("slider")
    slider = page.get_by_role("slider")
    assert [slider.get_attribute(name) for name in ("min", "max", "step")] == ["2", "2000", "2"]
    control("list")
    assert [page.get_by_role("slider").get_attribute(name) for name in ("min", "max", "step")] == ["0", "2", "1"]


def test_another_range_keeps_the_value_where_it_can(control):
    assert control(
        "slider",
        "c => { c.put(1000); const found = [];"
        " for (const high of [1500, 500]) { c.describe({label: 'depth', low: 0, high, step: 1, "
        "hidden: high === 500});"
        " found.push([c.at, c.input.max, c.label.textContent, c.value.textContent, c.element.hidden]); "
        "} return found; }",
    ) == [[1000, "1500", "depth", "1,000", False], [500, "500", "depth", "500", True]]
    assert control(
        "menu",
        "c => { c.put(2); c.describe({label: 'kind', labels: ['one', 'four']});"
        " return [c.at, [...c.input.options].map(option => option.text)]; }",
    ) == [1, ["one", "four"]]


def test_a_value_without_a_place_is_known_by_its_label(control):
    assert control(
        "list",
        "c => { c.put('1.0'); const there = [c.at, c.value.textContent]; c.put('0.7'); "
        "return [there, c.value.textContent, c.input.getAttribute('aria-valuetext')]; }",
    ) == [
        [2, "1.0"],
        "0.7",
        "0.7",
    ]
    assert control(
        "menu",
        "c => { c.put('four'); const there = c.input.selectedOptions[0].text; c.put(1);"
        " return [there, c.input.selectedOptions[0].text, c.input.options.length]; }",
    ) == ["four", "two", 3]


def test_a_play_button_is_beside_its_slider(control):
    assert control(
        "slider",
        "c => { const play = document.createElement('button'); const made = new front.Control("
        "{name: 'a', label: 'a', kind: 'slider', low: 0, high: 9, step: 1}, 'b', {play});"
        " return made.element.querySelector('.tp-track').firstChild === play; }",
    )


def test_pixels_are_those_of_a_slider(control):
    assert control("slider", "c => { c.input.style.width = '123px'; return c.pixels; }") == 123
    assert control("menu", "c => c.pixels") == 0


# ---------------------------------------------------------------- session.js

PART = {
    "controls": [
        {"name": "height", "label": "height", "kind": "slider", "low": 0, "high": 100, "step": 1, "hidden": False},
        {"name": "extra", "label": "extra", "kind": "slider", "labels": [str(n) for n in range(101)], "hidden": False},
        {"name": "red", "label": "red", "kind": "switch", "hidden": False},
    ],
    "presets": ["High", "Reset"],
    "play": "height",
    "interval": 30,
    "size": SIZE,
    "alt": "A bar",
    "guide": ["Look up."],
    "shows": {"bar": [0]},
    "primary": ["height", "extra", "red"],
    "handles": [
        {"name": "top", "label": "top of the bar", "controls": ["height"], "along": "y"},
        {"name": "corner", "label": "corner of the bar", "controls": ["height", "extra"], "along": "xy"},
    ],
    "words": {
        "settings": "Settings",
        "play": "Play: height",
        "pause": "Pause: height",
        "busy": "The kernel is busy.",
        "more": "More controls",
        "rows": "All numbers",
        "copy": "Copy this state",
        "copied": "Copied",
    },
}

# A session whose source notes what it is asked, and a view that notes what it is shown.
STAGE = """
(part) => {
    const calls = window.calls = [], log = window.log = [];
    const note = name => (...given) => { calls.push([name, ...given]); };
    const names = ["open", "close", "near", "leave", "ask", "got", "move", "press"];
    const source = Object.fromEntries(names.map(name => [name, note(name)]));
    const session = window.session = new front.Session(structuredClone(part), source);
    const view = (name = "one") => ({
        describe: of => log.push([name, "describe", of.length]),
        place: at => log.push([name, "place", {...at}]),
        show: shot => { log.push([name, "show", shot.key]); shown.push(shot.key); shot.by = name; },
        status: ({state}) => { if (states.at(-1) !== state) states.push(state); },
        announce: () => log.push([name, "announce"]),
        begin: () => log.push([name, "begin"]),
        learn: () => {},
    });
    const states = window.states = [], shown = window.shown = [];
    const ends = window.ends = new AbortController();
    Object.assign(window, {
        view,
        at: {height: 10, extra: 50, red: 0},
        // What a kernel answers.
        rest: (id = null, at = {}) => session.rest({id, at: Object.assign(window.at, at), frame: [[0], []], rows: []}),
        frame: (key, along = {}) => ({key, along, frame: [[0], [key]], rows: [key]}),
        range: () => session.range.id,
        give: (...keys) => session.frames(range(), keys.map(key => frame(key))),
        answer: key => session.frames(range(), [frame(key)], key),
        called: name => calls.filter(([kind]) => kind === name),
        last: name => called(name).at(-1),
        asked: () => called("ask").map(call => call[2]),
    });
    session.open(view(), ends.signal);
    rest();
    calls.length = states.length = shown.length = log.length = 0;
    states.push("idle");
}
"""


@pytest.fixture
def session(js):
    js(STAGE, PART)
    return js


def test_the_states_of_a_drag(session):
    assert session(
        """async () => {
            session.near("height", 200);
            session.move("height", 11);
            answer(11);
            await wait(150);
            rest(last("move")[3], {height: 11});
            session.leave();
            return states;
        }"""
    ) == ["idle", "near", "dragging", "settling", "near", "idle"]


def test_a_drag_without_a_pointer_ends_idle(session):
    assert session(
        "async () => { session.move('red', 1); session.leave(); const told = last('move').slice(0, 3); "
        "rest(last('move')[3], {red: 1}); return [states, told]; }"
    ) == [
        ["idle", "near", "dragging", "settling", "idle"],
        ["move", "red", 1],
    ]


def test_a_late_answer_makes_it_busy_and_the_newest_value_is_shown_when_it_comes(session):
    states, before, shown, asked = session(
        """async () => {
            session.near("height", 200);
            for (const at of [20, 21, 22, 23, 24]) session.move("height", at);
            await wait(950);
            const before = [...states];
            session.move("height", 30);
            answer(20);
            answer(21);
            answer(22);
            answer(30);
            await wait(120);
            rest(last("move")[3], {height: 30});
            return [states, before, shown, asked()];
        }"""
    )
    assert before == ["idle", "near", "dragging", "settling", "busy"]
    assert states[5:] in (["settling", "near"], ["dragging", "settling", "near"])
    assert shown[-1] == 30
    assert shown == sorted(shown)
    assert asked == [20, 21, 22, 30]


def test_a_late_answer_to_a_question_alone_makes_it_busy_too(session):
    assert session(
        """async () => {
            session.near("height", 200);
            session.move("height", 20);
            await wait(120);
            rest(last("move")[3], {height: 20});
            session.move("height", 30);
            session.settle();
            rest(last("move")[3], {height: 30});
            const before = states.at(-1);
            session.asked.set(40, performance.now());
            session.expect();
            await wait(900);
            const late = states.at(-1);
            for (const at of [20, 30, 40]) answer(at);
            return [before, late, states.at(-1)];
        }"""
    ) == ["near", "busy", "near"]


def test_an_answer_in_time_is_not_late(session):
    assert "busy" not in session(
        """async () => {
            session.near("height", 200);
            session.move("height", 20);
            await wait(600);
            answer(20);
            await wait(600);
            rest(last("move")[3], {height: 20});
            await wait(900);
            return states;
        }"""
    )


def test_busy_with_a_press_ends_with_its_answer(session):
    assert session(
        "async () => { session.press(0); await wait(900); rest(last('press')[2], {height: 90}); "
        "return [states, shown.length]; }"
    ) == [["idle", "settling", "busy", "idle"], 1]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "session.near('height', 9)",
        "session.move('height', 11)",
        "session.move('height', 11); session.settle()",
        "session.press(0)",
    ],
)
def test_once_gone_nothing_brings_it_back(session, before):
    after = session(
        f"""async () => {{
            {before};
            session.gone();
            const told = calls.length;
            const id = session.range?.id;
            session.move("height", 20);
            session.near("extra", 9);
            session.press(0);
            rest(session.pending);
            if (id) session.frames(id, [frame(20)], 20);
            await wait(950);
            return [states.at(-1), calls.slice(told).map(call => call[0])];
        }}"""
    )
    assert after[0] == "gone"
    assert set(after[1]) <= {"got"}


def test_a_value_is_told_when_it_rests_and_once(session):
    assert session(
        """async () => {
            session.near("height", 200);
            for (let at = 20; at < 25; at += 1) { session.move("height", at); await wait(30); }
            const before = called("move").length;
            await wait(170);
            return [before, called("move").map(call => call.slice(1, 3))];
        }"""
    ) == [0, [["height", 24]]]


@pytest.mark.parametrize(
    "act", ["session.near('extra', 9)", "session.leave()", "session.press(1)", "session.giveWay()"]
)
def test_what_was_moved_is_told_before_anything_else_happens(session, act):
    told = session(
        f"async () => {{ session.near('height', 9); session.move('height', 24); calls.length = 0; {act}; "
        f"await wait(150); return calls; }}"
    )
    moves = [call for call in told if call[0] == "move"]
    assert [call[:3] for call in moves] == [["move", "height", 24]]
    assert told.index(moves[0]) == 0


def test_a_press_after_a_move_has_the_last_word(session):
    shown, state, at = session(
        """async () => {
            session.near("height", 9);
            session.move("height", 24);
            session.press(0);
            const [moved, pressed] = [last("move")[3], last("press")[2]];
            shown.length = 0;
            rest(moved, {height: 24});
            const between = [shown.length, states.at(-1)];
            rest(pressed, {height: 90});
            return [between, states.at(-1), session.at.height];
        }"""
    )
    assert shown == [0, "settling"]
    assert (state, at) == ("near", 90)


def test_the_answer_to_an_earlier_move_does_not_move_a_control(session):
    assert session(
        """async () => {
            session.near("height", 9);
            session.move("height", 24);
            session.settle();
            const first = last("move")[3];
            session.move("height", 30);
            rest(first, {height: 24});
            const between = [session.at.height, states.at(-1)];
            session.settle();
            rest(first, {height: 24});
            const still = session.at.height;
            rest(last("move")[3], {height: 30});
            return [between, still, session.at.height, states.at(-1)];
        }"""
    ) == [[30, "dragging"], 30, 30, "near"]


def test_at_most_three_questions_are_under_way_and_the_latest_value_is_next(session):
    assert session(
        """async () => {
            session.near("height", 200);
            for (const at of [20, 21, 22, 23, 24, 25]) session.move("height", at);
            const first = asked();
            answer(20);
            const second = asked();
            session.move("height", 26);
            answer(21);
            answer(22);
            return [first, second, asked()];
        }"""
    ) == [[20, 21, 22], [20, 21, 22, 25], [20, 21, 22, 25, 26]]


def test_what_is_here_is_not_asked_for_and_nothing_twice(session):
    assert session(
        "async () => { session.near('height', 200); give(20, 21); "
        "for (const at of [20, 21, 22, 20, 22]) session.move('height', at); return asked(); }"
    ) == [22]


def test_a_picture_never_goes_back_and_never_beyond(session):
    assert session(
        """async () => {
            session.near("height", 200);
            give(12, 40, 70);
            const found = [];
            for (const at of [50, 60]) { session.move("height", at); found.push(shown.at(-1)); }
            answer(50);
            found.push(shown.at(-1));
            session.move("height", 30);
            found.push(shown.at(-1));
            answer(60);
            found.push(shown.at(-1));
            answer(30);
            found.push(shown.at(-1));
            return found;
        }"""
    ) == [40, 40, 50, 40, 40, 30]


@pytest.mark.parametrize(
    ("keys", "shown", "wanted", "best"),
    [
        ([10, 20, 30], 10, 20, 20),
        ([10, 30, 60], 10, 50, 30),
        ([60, 30, 10], 60, 20, 30),
        ([60], 10, 50, None),
        ([0], 10, 50, None),
        ([], 10, 50, None),
        ([10, 49, 51], 10, 50, 49),
        ([50], 10, 50, 50),
    ],
)
def test_the_nearest_on_the_way(js, keys, shown, wanted, best):
    code = """([keys, shown, wanted]) => {
        const store = new front.Store();
        for (const key of keys) store.frames.set(key, {});
        return store.onTheWay(shown, wanted) ?? null;
    }"""
    assert js(code, [keys, shown, wanted]) == best


def test_a_value_without_a_frame_waits_for_what_is_at_rest(session):
    """The question is not asked again at once: its answer was that there is none."""
    assert session(
        """async () => {
            session.near("height", 200);
            session.move("height", 20);
            session.frames(range(), [], 20);
            const once = asked().length;
            session.settle();
            rest(last("move")[3], {height: 20});
            return [once, asked().length, states.at(-1), shown];
        }"""
    ) == [1, 1, "near", [20]]


def test_frames_ahead_are_acknowledged_and_answers_are_not(session):
    assert session(
        "() => { session.near('height', 200); give(11); session.frames('another', [frame(12)]); "
        "session.move('height', 20); answer(20);"
        " session.frames('another', [frame(12)], 12); "
        "return [called('got').length, [...session.store.frames.keys()]]; }"
    ) == [2, [11, 20]]


@pytest.mark.parametrize(
    "how", ["session.near('extra', 9)", "session.stale(id)", "session.press(0)", "session.begin()", "session.giveWay()"]
)
def test_frames_of_a_range_that_is_over_are_dropped(session, how):
    left, range_is_kept, shown = session(
        f"""() => {{
            session.near("height", 200);
            const id = range();
            give(11, 12, 50);
            session.move("height", 50);
            session.settle();
            shown.length = 0;
            {how};
            session.frames(id, [frame(30)], 30);
            session.frames(id, [frame(31)]);
            const left = session.store.frames.size;
            return [left, session.range?.id === id, shown];
        }}"""
    )
    assert (left, range_is_kept, shown) == (0, False, [])


def test_frames_of_one_control_are_not_shown_for_another(session):
    """Both have a place 60: see that of the second."""
    assert session(
        """() => {
            session.near("height", 200);
            give(20, 60);
            session.move("height", 20);
            session.settle();
            rest(last("move")[3], {height: 20});
            shown.length = 0;
            session.near("extra", 9);
            session.move("extra", 60);
            const before = [...shown];
            session.frames(range(), [{...frame(60), rows: [7]}], 60);
            return [before, shown, session.last.rows];
        }"""
    ) == [[], [60], [7]]


def test_a_stale_range_of_another_time_changes_nothing(session):
    assert (
        session(
            "() => { session.near('height', 9); give(11); session.stale('another'); return session.store.frames.size; }"
        )
        == 1
    )


@pytest.mark.parametrize("how", ["session.stale(range())", "session.begin()"])
def test_a_value_that_is_moved_while_its_range_ends_is_still_told(session, how):
    """As when a cell sets another control during a drag."""
    assert session(
        f"""async () => {{
            session.near("height", 9);
            session.move("height", 24);
            {how};
            rest(null, {{height: 10, red: 1}});
            const meanwhile = [session.at.height, states.at(-1)];
            await wait(150);
            const told = last("move").slice(1, 3);
            rest(last("move")[3], {{height: 24}});
            return [meanwhile, told, states.at(-1), session.at];
        }}"""
    ) == [[24, "dragging"], ["height", 24], "near", {"height": 24, "extra": 50, "red": 1}]


def test_after_a_range_has_ended_the_pointer_is_near_in_a_new_one(session):
    assert session(
        "() => { session.near('height', 9); const id = range(); session.stale(id); rest(null, {red: 1});"
        " return [last('near').slice(2), range() !== id, range() === last('near')[1]]; }"
    ) == [["height", 10, 9], True, True]


def test_after_a_rest_the_source_knows_from_where_the_pointer_moves_on(session):
    assert session(
        "() => { session.near('height', 9); const id = range(); session.move('height', 40); session.settle();"
        " rest(last('move')[3], {height: 40}); return [last('near').slice(2), range() === id]; }"
    ) == [["height", 40, 9], True]


NOTHING = {"boxes": [], "words": []}


def test_things_are_kept_until_all_numbers_begin_anew(session):
    assert session(
        """() => {
            session.news({paths: ["a"], rows: ["b"]});
            session.news({paths: ["c"]});
            const first = structuredClone(session.store.drawings);
            session.near("height", 9);
            session.begin();
            session.news({paths: ["d"]});
            return [first, session.store.drawings, log.at(-1), session.last];
        }"""
    ) == [
        {"paths": ["a", "c"], "styles": [], "images": [], "parts": [], "rows": ["b"], **NOTHING},
        {"paths": ["d"], "styles": [], "images": [], "parts": [], "rows": [], **NOTHING},
        ["one", "begin"],
        None,
    ]


def test_all_views_move_alike(session):
    """Those that are moved by hand, those beside them, and one that comes later."""
    assert session(
        """() => {
            session.open(view("two"), new AbortController().signal);
            log.length = 0;
            session.near("height", 9);
            session.move("height", 20);
            session.frames(range(), [frame(20, {red: 1})], 20);
            session.settle();
            rest(last("move")[3], {height: 20, red: 1});
            session.describe([{name: "height"}]);
            const seen = name => log.filter(([of, what]) => of === name).map(([, ...rest]) => rest);
            const late = [];
            const quiet = {describe() {}, status() {}, announce() {}};
            session.open({...quiet, place: at => late.push({...at}), show: ({key}) => late.push(key)},
                new AbortController().signal);
            return [seen("one"), seen("two"), late, called("open").length];
        }"""
    ) == [
        seen := [
            ["place", {"height": 20, "extra": 50, "red": 0}],
            ["place", {"red": 1}],
            ["show", 20],
            ["place", {"height": 20, "extra": 50, "red": 1}],
            ["show", 20],
            ["announce"],
            ["describe", 1],
        ],
        seen,
        [{"height": 20, "extra": 50, "red": 1}, 20],
        0,
    ]


def test_the_source_is_open_as_long_as_there_is_a_view(session):
    first, second, third = session(
        """async () => {
            const other = new AbortController();
            session.open(view("two"), other.signal);
            session.near("height", 9);
            ends.abort();
            await wait(1100);
            const first = [called("close").length, states.at(-1)];
            other.abort();
            const again = new AbortController();
            session.open(view("three"), again.signal);
            await wait(1100);
            const second = [called("close").length, called("open").length];
            session.near("height", 9);
            again.abort();
            const third = [last("leave"), session.state];
            await wait(1100);
            return [first, second, [...third, called("close").length]];
        }"""
    )
    assert first == [0, "near"]
    assert second == [0, 1]
    assert third == [["leave"], "idle", 1]


def test_a_source_that_another_page_closed_is_opened_again(session):
    assert session(
        "() => { session.reopen(); const open = called('open').length; ends.abort(); session.reopen(); "
        "return [open, called('open').length]; }"
    ) == [1, 1]


def test_one_explorer_of_a_page_has_frames(session):
    assert session(
        """() => {
            const heard = [];
            document.addEventListener("tp-range", ({detail}) => heard.push(detail === session), {once: true});
            session.near("height", 9);
            give(11, 12);
            session.giveWay();
            return [heard, session.store.frames.size, session.range, states.at(-1), last("leave")];
        }"""
    ) == [[True], 0, None, "idle", ["leave"]]


def test_a_control_without_a_place_is_not_near(session):
    assert session("() => { session.at.red = null; session.near('red', 9); return [states, calls]; }") == [
        ["idle"],
        [],
    ]


def test_what_moves_along_is_known(session):
    assert session(
        "() => { session.near('height', 9); session.move('height', 20); "
        "session.frames(range(), [frame(20, {extra: 70})], 20); return session.at; }"
    ) == {"height": 20, "extra": 70, "red": 0}


# ---------------------------------------------------------------- playing


def test_playing_steps_by_one_and_waits_until_its_frame_was_painted(session):
    waiting, values = session(
        """async () => {
            session.togglePlay();
            await wait(200);
            const waiting = session.at.height;
            const values = [];
            for (let i = 0; i < 5; i += 1) {
                values.push(session.at.height);
                answer(session.at.height);
                session.painted({key: session.at.height - 1});
                await wait(60);
                values.push(session.at.height);
                session.painted({key: session.at.height});
                const before = session.at.height;
                while (session.at.height === before) await wait(5);
            }
            return [waiting, values];
        }"""
    )
    assert waiting == 11
    assert values == [value for at in range(11, 16) for value in (at, at)]


def test_playing_stops_at_the_end_and_begins_at_the_start(session):
    assert session(
        """async () => {
            const values = [];
            const play = async () => {
                session.togglePlay();
                while (session.playing) {
                    if (values.at(-1) !== session.at.height) values.push(session.at.height);
                    session.painted({key: session.at.height});
                    await wait(5);
                }
            };
            session.at.height = 97;
            await play();
            session.togglePlay();
            values.push(session.at.height);
            session.togglePlay();
            return [values, session.playing];
        }"""
    ) == [[98, 99, 100, 0], False]


@pytest.mark.parametrize(
    ("act", "plays"),
    [
        ("move('red', 1)", False),
        ("press(0)", False),
        ("togglePlay()", False),
        ("leave()", True),
        ("gone()", False),
        ("giveWay()", False),
    ],
)
def test_what_ends_playing(session, act, plays):
    assert session(
        f"""async () => {{
            session.togglePlay();
            session.{act};
            const plays = session.playing, before = called("move").length;
            session.painted({{key: session.wanted}});
            const there = session.at.height;
            await wait(100);
            return [plays, session.at.height > there];
        }}"""
    ) == [plays, plays]


def test_who_wants_little_motion_gets_single_steps(session, page):
    page.emulate_media(reduced_motion="reduce")
    try:
        assert session("() => { session.togglePlay(); return [session.at.height, session.playing]; }") == [11, False]
    finally:
        page.emulate_media(reduced_motion="no-preference")


# ---------------------------------------------------------------- explorer.js

# An explorer on the page whose source answers when it is let; `things` are those of its frames.
EXPLORER = """
([part, drawings]) => {
    const root = document.createElement("div");
    root.style.width = "400px";
    document.body.replaceChildren(root);
    const calls = window.calls = [];
    const note = name => (...given) => { calls.push([name, ...given]); };
    const source = {
        open: note("open"), close: note("close"), leave: note("leave"), got() {}, near: note("near"),
        ask(range, at) { calls.push(["ask", at]); if (answers) session.frames(range, [frame(at)], at); },
        move(control, at, id) { calls.push(["move", control, at]); if (answers) rest(id, {[control]: at}); },
        press(number, id) { calls.push(["press", number]); if (answers) rest(id, {height: [90, 10][number]}); },
    };
    // The table of a height: its number, and a line that stays.
    const rows = Array.from({length: 101}, (_, at) =>
        `<tr><th>height</th><td data-style="color: rgb(${at}, 0, 0)">${at}</td></tr>`);
    const parts = [...drawings.parts];
    while (parts.length < 101) parts.push([[0, 0, parts.length, 0]]);
    const things = {...drawings, parts, rows: [...rows, "<tr><th>unit</th><td>m</td></tr>"]};
    const at = {height: 10, extra: 50, red: 0};
    const session = window.session = new front.Session(structuredClone(part), source);
    const ends = window.ends = new AbortController();
    const paints = window.paints = [];
    Object.assign(window, {
        answers: true,
        root,
        things,
        called: name => calls.filter(([kind]) => kind === name),
        frame: key => ({key, along: {}, frame: [[0], [key]], rows: [key, 101]}),
        rest: (id, changes = {}) => session.rest({id, ...frame(Object.assign(at, changes).height), at: {...at}}),
        screen: () => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))),
        table: () => [...root.querySelectorAll("td")].map(cell => cell.textContent),
    });
    root.addEventListener("tp-paint", ({detail}) => paints.push([detail.key, Number(table()[0]),
        Number(root.querySelector("input[data-control=height]").value)]));
    window.explorer = new front.Explorer(root, session, ends.signal);
    session.open(explorer, ends.signal);
    session.begin();
    session.news(things);
    rest(null);
    return screen();
}
"""


@pytest.fixture
def explorer(page):
    page.evaluate(EXPLORER, [PART, DRAWINGS])
    yield page
    page.evaluate("() => ends.abort()")


def test_everything_has_a_name_that_is_read_out(explorer):
    for role, name in (
        ("img", "A bar"),
        ("slider", "height"),
        ("slider", "extra"),
        ("checkbox", "red"),
        ("group", "Settings"),
    ):
        assert explorer.get_by_role(role, name=name, exact=True).count() == 1, name
    assert [button.inner_text() for button in explorer.get_by_role("group").get_by_role("button").all()] == [
        "High",
        "Reset",
    ]
    assert explorer.get_by_role("button", name="Play: height", exact=True).count() == 1
    assert explorer.get_by_role("slider", name="height").get_attribute("aria-valuetext") == "10"
    spoken = explorer.locator(".tp-spoken")
    assert (spoken.get_attribute("role"), spoken.get_attribute("aria-live")) == ("status", "polite")
    assert explorer.locator("[aria-live]").count() == 1  # the table itself is not read out


def test_it_shows_where_the_source_is(explorer):
    assert explorer.evaluate("() => [table(), paints, session.state]") == [["10", "m"], [[None, 10, 10]], "idle"]
    assert explorer.locator("td").first.evaluate("cell => getComputedStyle(cell).color") == "rgb(10, 0, 0)"


def test_a_drag_moves_picture_table_and_slider_together(explorer):
    slider = explorer.get_by_role("slider", name="height")
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    explorer.mouse.move(box["x"] + 8 + 0.1 * (box["width"] - 16), y)
    explorer.mouse.down()
    for share in np.linspace(0.15, 0.8, 8):
        explorer.mouse.move(box["x"] + 8 + share * (box["width"] - 16), y)
        explorer.evaluate("() => screen()")
    explorer.mouse.up()
    explorer.wait_for_timeout(200)
    paints, calls = explorer.evaluate("() => [paints, calls.filter(([kind]) => kind !== 'ask' && kind !== 'open')]")
    assert len(paints) >= 8
    assert all(key in (None, numbers) and numbers == value for key, numbers, value in paints)
    assert [numbers for _, numbers, _ in paints] == sorted(numbers for _, numbers, _ in paints)
    assert [kind for kind, *_ in calls][:1] == ["near"]
    assert calls[0][2:4] == ["height", 10]
    assert calls[0][4] == pytest.approx(box["width"], abs=1)
    assert [call for call in calls if call[0] == "move"] == [["move", "height", paints[-1][0]]]


def test_a_control_shows_its_own_value_at_once(explorer):
    explorer.evaluate("() => { answers = false; }")
    slider = explorer.get_by_role("slider", name="height")
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "100"
    assert explorer.locator(".tp-value").first.inner_text() == "100"


def test_keys_move_a_slider(explorer):
    slider = explorer.get_by_role("slider", name="height")
    seen = []
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "Home", "End"):
        slider.press(key)
        explorer.evaluate("() => screen()")
        seen.append(explorer.evaluate("() => [Number(table()[0]), explorer.painted.key]"))
    assert seen == [[at, at] for at in (11, 12, 11, 0, 100)]
    explorer.get_by_role("checkbox", name="red").press(" ")
    explorer.wait_for_timeout(200)
    assert explorer.evaluate("() => called('move').at(-1)") == ["move", "red", 1]


def test_the_pointer_over_a_control_is_near_after_a_moment_and_not_beside_it(explorer):
    slider, extra = (explorer.get_by_role("slider", name=name) for name in ("height", "extra"))
    slider.hover()
    assert explorer.evaluate("() => called('near')") == []
    explorer.wait_for_timeout(150)
    assert [call[2] for call in explorer.evaluate("() => called('near')")] == ["height"]
    extra.hover()
    explorer.wait_for_timeout(150)
    assert explorer.evaluate("() => session.nearest") == "extra"
    explorer.mouse.move(1000, 700)
    explorer.wait_for_timeout(150)
    assert explorer.evaluate("() => [session.nearest, session.state, called('leave').length]") == [None, "idle", 1]


def test_a_control_that_has_the_focus_stays_near_under_a_passing_pointer(explorer):
    explorer.get_by_role("slider", name="height").focus()
    explorer.get_by_role("slider", name="extra").hover()
    explorer.wait_for_timeout(150)
    assert explorer.evaluate("() => session.nearest") == "height"


def test_only_what_changed_is_said_and_only_at_rest(explorer):
    spoken = explorer.locator(".tp-spoken")
    explorer.wait_for_timeout(700)
    assert spoken.inner_text() == ""
    slider = explorer.get_by_role("slider", name="height")
    said = []
    for _ in range(8):
        slider.press("ArrowRight")
        explorer.wait_for_timeout(60)
        said.append(spoken.inner_text())
    explorer.wait_for_timeout(300)
    said.append(spoken.inner_text())
    assert set(said) == {""}
    explorer.wait_for_timeout(500)
    assert spoken.inner_text() == "height 18"
    slider.press("ArrowRight")
    explorer.wait_for_timeout(800)
    assert spoken.inner_text() == "height 19"


def test_buttons_press_and_say_which_was_pressed(explorer):
    high, reset = (explorer.get_by_role("button", name=name) for name in ("High", "Reset"))
    high.click()
    explorer.evaluate("() => screen()")
    assert explorer.evaluate("() => [called('press'), table()[0], session.at.height]") == [[["press", 0]], "90", 90]
    assert [button.get_attribute("aria-pressed") for button in (high, reset)] == ["true", "false"]
    assert explorer.get_by_role("slider", name="height").get_attribute("aria-valuetext") == "90"
    reset.press("Enter")
    assert [button.get_attribute("aria-pressed") for button in (high, reset)] == ["false", "true"]


def test_playing_shows_each_picture_with_its_table(explorer):
    play = explorer.get_by_role("button", name="Play: height")
    play.click()
    assert explorer.get_by_role("button", name="Pause: height").count() == 1
    explorer.wait_for_function("() => session.at.height >= 20")
    explorer.get_by_role("button", name="Pause: height").click()
    explorer.wait_for_timeout(250)
    paints = explorer.evaluate("() => paints")
    keys = list(dict.fromkeys(numbers for _, numbers, _ in paints))
    assert keys == [*range(10, keys[-1] + 1)]
    assert all(key in (None, numbers) and numbers == value for key, numbers, value in paints)
    assert explorer.evaluate("() => called('move').at(-1)") == ["move", "height", keys[-1]]
    assert play.inner_text() == "▶"


def test_what_is_busy_is_said_and_what_is_gone_is_dimmed(explorer):
    explorer.evaluate("() => { answers = false; session.move('height', 20); }")
    notice = explorer.locator(".tp-notice")
    assert notice.inner_text() == ""
    explorer.wait_for_timeout(1000)
    assert notice.inner_text() == "The kernel is busy."
    assert explorer.locator(".tp-body").get_attribute("data-state") == "busy"
    assert explorer.get_by_role("slider", name="height").is_enabled()
    explorer.evaluate("() => rest(session.pending, {height: 20})")
    assert notice.inner_text() == ""
    explorer.evaluate("() => session.gone()")
    assert all(
        not made.is_enabled()
        for made in explorer.locator(".tp-controls :is(input, select, button:not(.tp-asks))").all()
    )
    assert explorer.locator(".tp-body").get_attribute("data-state") == "gone"


# ---------------------------------------------------------------- over.js, and what lights up


@pytest.mark.parametrize(
    ("known", "point", "key"),
    [
        ([[3, [0, 0]]], [9, 9], 3),
        ([[0, [0, 0]], [10, [100, 0]]], [42, 30], 4.2),
        ([[0, [0, 0]], [10, [100, 0]]], [-5, 0], 0),
        # There and back: the way on which the hand is decides.
        ([[0, [0, 0]], [5, [50, 0]], [10, [0, 0]]], [20, 0], 8),
    ],
)
def test_between_known_places_the_way_is_straight(js, known, point, key):
    found = js("([known, point]) => front.nearestOnWay(known, point, 9)", [known, point])
    assert found == pytest.approx(key)


def test_of_a_track_the_nearest_place_is_taken_by_the_directions_that_count(js):
    track = "Int16Array.from([0, 0, 160, 1600, 320, 160])"
    nearest = f"weights => front.nearestInTrack({track}, [12, 9], weights)"
    assert [js(nearest, weights) for weights in ([1, 1], [1, 0], [0, 1])] == [2, 1, 2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("(2.121320, -0.012346)", "(2.121, -0.01235)"),
        ("1.326852e-23 of 16,384", "1.327e-23 of 16,384"),
        ("3.000000 %", "3.000 %"),
        ("12345.678 and 1,234.5678", "12346 and 1,235"),
        ("0.000000", "0.000"),
        ("x0.123456, 0.5, 100.25 and layer 1.2.3", "x0.123456, 0.5, 100.3 and layer 1.2.3"),
    ],
)
def test_numbers_have_four_digits(js, text, shown):
    assert js("text => front.short(text)", text) == shown


# The bar's top is its first grip, and the second one has no place.  The picture has 400 pixels of the page.
WITH_GRIPS = """() => {
    const before = frame, at = {height: 10, extra: 50, red: 0};
    window.frame = key => ({...before(key), grips: [[10, 9 - 0.08 * key, 0], []], words: [[0, 4, 4]], formula: 102});
    things.rows.push('<span data-mark="bar">h = 10.000000</span>');
    things.rows[101] = '<tr data-mark="bar"><th>unit</th><td>1.234567</td></tr>';
    things.boxes = [[8, 1, 4, 8]];
    things.words = [["top", "#004488", "right"]];
    session.begin();
    session.news(things);
    const height = changes => Object.assign(at, changes).height;
    window.rest = (id, changes = {}) => session.rest({id, code: "code", ...frame(height(changes)), at: {...at}});
    for (const node of [explorer.stage, explorer.canvas]) node.style.maxWidth = "400px";
    rest(null);
    return screen();
}"""


@pytest.fixture
def gripped(explorer):
    explorer.evaluate(WITH_GRIPS)
    return explorer


def place(explorer, x: float, y: float) -> tuple[float, float]:
    """Return where a point of the picture is on the page."""
    box = explorer.locator("canvas").bounding_box()
    return box["x"] + x * box["width"] / SIZE["width"], box["y"] + y * box["height"] / SIZE["height"]


def test_a_hand_takes_a_grip_and_its_control_follows(gripped):
    grip = gripped.get_by_role("slider", name="top of the bar")
    assert grip.get_attribute("aria-valuetext") == "height 10"
    assert gripped.get_by_role("slider", name="corner of the bar").count() == 0, "it has no place in these frames"
    gripped.mouse.move(*place(gripped, 10, 8.2))
    gripped.mouse.down()
    gripped.evaluate("() => session.frames(session.range.id, [frame(0), frame(100)])")
    gripped.mouse.move(*place(gripped, 10.5, 5), steps=3)
    gripped.mouse.up()
    gripped.wait_for_timeout(300)
    assert gripped.evaluate("() => [session.at.height, called('move').at(-1), Number(table()[0])]") == [
        50,
        ["move", "height", 50],
        50,
    ]
    assert grip.get_attribute("aria-valuenow") == "50"


def test_where_a_grip_may_be_taken_anywhere_it_comes_to_the_hand(gripped):
    gripped.evaluate("() => session.near('height')")
    gripped.evaluate("() => session.frames(session.range.id, [frame(0), frame(100)])")
    gripped.mouse.click(*place(gripped, 10, 3))
    gripped.wait_for_timeout(300)
    assert gripped.evaluate("() => session.at.height") == 75
    gripped.mouse.click(*place(gripped, 15, 3))
    gripped.wait_for_timeout(200)
    assert gripped.evaluate("() => session.at.height") == 75, "outside of its box nothing happens"


def test_keys_move_what_a_grip_moves(gripped):
    gripped.locator(".tp-grip").first.focus()
    for key, height in (("ArrowUp", 11), ("ArrowLeft", 10), ("PageUp", 15), ("End", 100), ("Home", 0)):
        gripped.keyboard.press(key)
        assert gripped.evaluate("() => session.at.height") == height, key


def test_a_grip_of_two_controls_has_a_key_for_both(session):
    assert session(
        "() => { const key = session.key('corner', {height: 3, extra: 7});"
        " return [key, session.places('corner', key), session.key('corner', {height: 3, extra: null})]; }"
    ) == [3 * 101 + 7, {"height": 3, "extra": 7}, None]


def test_of_two_controls_the_newest_frame_is_shown(session):
    assert session(
        "() => { session.near('corner'); session.move('corner', 500); answer(500); session.move('corner', 200);"
        " session.move('corner', 700); give(200); return [shown, session.at.height, session.at.extra]; }"
    ) == [[500, 200], 700 // 101, 700 % 101]


def test_words_and_formula_are_text_of_the_page(gripped):
    word = gripped.locator(".tp-word")
    assert word.inner_text() == "top"
    assert word.evaluate("node => node.style.left") == "20%"
    assert gripped.locator(".tp-formula").inner_text() == "h = 10.00"


def test_all_digits_are_shown_to_those_who_ask_and_at_a_worked_example(gripped):
    cells = "() => table()"
    assert gripped.evaluate(cells)[1] == "1.235"
    gripped.evaluate("() => explorer.all.click()")
    assert gripped.evaluate(cells)[1] == "1.234567"
    gripped.evaluate("() => explorer.fold(true)")
    gripped.get_by_role("button", name="High").click()
    assert gripped.evaluate(cells)[1] == "1.234567"
    assert gripped.locator(".tp-step").inner_text() == "Look up."


def test_row_term_and_mark_light_up_together(gripped):
    lit = "() => [...root.querySelectorAll('.tp-lit')].map(node => node.tagName)"
    gripped.locator("tr[data-mark=bar]").hover()
    assert gripped.evaluate(lit) == ["SPAN", "TR"]
    gripped.locator("tr").first.hover()
    assert gripped.evaluate(lit) == []


def test_what_was_there_before_stays_while_a_control_is_moved(explorer):
    before = "() => session.before?.key ?? null"
    assert explorer.evaluate(before) is None
    explorer.evaluate("() => { answers = false; session.move('height', 20); }")
    assert explorer.evaluate("() => session.before.frame") == [[0], [10]]
    explorer.evaluate("() => { answers = true; session.settle(); }")
    explorer.evaluate("() => rest(session.pending, {height: 20})")
    assert explorer.evaluate(before) is None


def test_a_control_without_effect_says_why(explorer):
    explorer.evaluate("() => session.describe(session.part.controls.map(one => ({...one, reason: 'ALiBi has none.'})))")
    assert not explorer.get_by_role("slider", name="extra").is_enabled()
    assert explorer.locator(".tp-control").first.get_attribute("title") == "ALiBi has none."


def test_numbers_that_begin_anew_are_looked_up_anew(explorer):
    """The table and the picture may have the numbers that they had, and stand for others."""
    before = explorer.evaluate("() => table()")
    after = explorer.evaluate(
        """async () => {
            session.show();
            explorer.show(explorer.shot);
            session.begin();
            await screen();
            const between = table();
            session.news({...things, rows: things.rows.map(row => row.replace("</td>", " anew</td>"))});
            rest(null);
            await screen();
            return [between, table()];
        }"""
    )
    assert after == [before, ["10 anew", "m anew"]]


def test_the_picture_follows_its_width_and_the_theme(explorer):
    widths, colours = [], []
    for width, theme in ((400, "light"), (12, "light"), (12, "dark"), (400, "dark")):
        explorer.evaluate(
            "([width, theme]) => { root.style.width = `${width}px`; document.documentElement.dataset.theme = theme; }",
            [width, theme],
        )
        explorer.evaluate("() => screen()")
        widths.append(
            explorer.evaluate(
                "() => [explorer.canvas.width, Math.round(explorer.canvas.clientWidth * devicePixelRatio)]"
            )
        )
        colours.append(
            explorer.evaluate(
                "() => [...explorer.canvas.getContext('2d').getImageData(explorer.canvas.width - 1, "
                "explorer.canvas.height - 1, 1, 1).data]"
            )
        )
    explorer.evaluate("() => { delete document.documentElement.dataset.theme; }")
    assert all(have == want for have, want in widths)
    assert colours[0] == colours[1] == [0, 255, 0, 255]
    assert colours[2] == colours[3] != colours[0]


@pytest.mark.parametrize(
    ("mark", "dark"),
    [
        ("document.body.dataset.jpThemeLight = 'false'", True),
        ("document.body.dataset.jpThemeLight = 'true'", False),
        ("document.body.dataset.vscodeThemeKind = 'vscode-dark'", True),
        ("document.body.dataset.vscodeThemeKind = 'vscode-light'", False),
        ("document.documentElement.dataset.theme = 'dark'", True),
        ("document.documentElement.dataset.theme = 'light'", False),
    ],
)
def test_the_theme_is_that_of_the_page(explorer, mark, dark):
    explorer.evaluate(f"() => {{ {mark}; }}")
    explorer.evaluate("() => screen()")
    found = explorer.evaluate("() => explorer.painter.dark")
    explorer.evaluate(
        "() => { for (const {dataset} of [document.body, "
        "document.documentElement]) for (const name of Object.keys(dataset)) delete dataset[name]; }"
    )
    explorer.evaluate("() => screen()")
    assert found is dark
    assert explorer.evaluate("() => explorer.painter.dark") is False


def test_the_reader_s_wish_counts_where_the_page_allows_both(explorer):
    explorer.emulate_media(color_scheme="dark")
    try:
        plain = explorer.evaluate("async () => { await screen(); return explorer.painter.dark; }")
        allowed = explorer.evaluate(
            "async () => { document.documentElement.style.colorScheme = 'light dark'; await screen(); "
            "return explorer.painter.dark; }"
        )
    finally:
        explorer.emulate_media(color_scheme="light")
        explorer.evaluate("() => { document.documentElement.style.colorScheme = ''; }")
    assert (plain, allowed) == (False, True)


def test_what_is_gone_from_the_page_leaves_nothing(explorer):
    assert explorer.evaluate(
        "async () => { session.move('height', 30); ends.abort(); await wait(300);"
        " const painted = paints.length; session.last && explorer.show; "
        "document.documentElement.dataset.theme = 'dark';"
        " await screen(); delete document.documentElement.dataset.theme; "
        "return [root.childElementCount, paints.length === painted]; }"
    ) == [0, True]


# ---------------------------------------------------------------- page.js


def pack(**changes):
    """Return the pack of an explorer: heights 0, 5, 10, and a switch that they take along."""
    controls = [
        {"name": "height", "label": "height", "kind": "slider", "labels": ["0", "5", "10"], "hidden": False},
        {"name": "red", "label": "red", "kind": "switch", "labels": ["off", "on"], "hidden": False},
    ]
    shots = [[[[0], [n]], [n]] for n in range(5)]
    start = {
        "shot": 1,
        "at": {"height": 1, "red": 0},
        "controls": controls,
        "ranges": {
            "height": {"shots": [0, 1, 2], "moved": [{}, {}, {"red": 1}]},
            "red": {"shots": [1, 3], "moved": [{}, {}]},
        },
    }
    preset = {"shot": 4, "at": {"height": 2, "red": 1}, "controls": controls, "ranges": {}}
    return {
        "drawings": {"rows": [f"<tr><td>{n}</td></tr>" for n in range(5)]},
        "shots": shots,
        "starts": [start, preset],
    } | changes


PACK = """
([part, pack]) => {
    const source = new front.Pack(pack);
    window.session = new front.Session({...part, controls: pack.starts[0].controls}, source);
    window.shown = [];
    window.placed = [];
    const view = {describe() {}, status() {}, announce() {}, begin() {}, learn() {},
        place: at => placed.push({...at}), show: ({key, rows}) => { shown.push(rows[0]); session.painted({key}); }};
    session.open(view, new AbortController().signal);
}
"""


@pytest.fixture
def packed(js):
    js(PACK, [PART, pack()])
    return js


def test_a_pack_shows_its_start_and_every_frame_of_a_range(packed):
    assert packed(
        "async () => { session.near('height'); for (const at of [2, 0, 1]) session.move('height', at); "
        "await wait(150);"
        " return [shown, session.state, session.at]; }"
    ) == [[1, 2, 0, 1, 1], "near", {"height": 1, "red": 0}]


def test_in_a_pack_others_move_along(packed):
    assert packed(
        "async () => { session.move('height', 2); const along = {...session.at}; await wait(150); "
        "return [along, session.at, shown.at(-1)]; }"
    ) == [{"height": 2, "red": 1}, {"height": 2, "red": 1}, 2]


def test_another_control_of_a_pack_moves_from_the_start(packed):
    assert packed(
        "async () => { session.move('height', 0); session.settle(); session.move('red', 1); await wait(150); "
        "return [session.at, shown.at(-1)]; }"
    ) == [{"height": 1, "red": 1}, 3]


def test_buttons_of_a_pack_are_its_presets_and_then_its_start(packed):
    assert packed(
        "() => { session.press(0); const first = [{...session.at}, shown.at(-1)]; session.press(1);"
        " return [first, session.at, shown.at(-1), session.state]; }"
    ) == [[{"height": 2, "red": 1}, 4], {"height": 1, "red": 0}, 1, "idle"]


def test_a_pack_without_frames_of_a_control_is_no_error(packed):
    assert packed(
        "() => { session.press(0); session.near('height'); return [session.state, session.store.frames.size]; }"
    ) == ["near", 0]


def test_a_pack_plays_by_single_steps(packed):
    assert packed(
        "async () => { session.part.play = 'height'; session.move('height', 0); session.settle(); shown.length = 0;"
        " session.togglePlay(); await wait(400); return [[...new Set(shown)], session.playing]; }"
    ) == [[1, 2], False]
