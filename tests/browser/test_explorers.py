"""Each explorer under a hand: mouse, keyboard, buttons, width, theme, and what it says when something went wrong."""

import io
import json
import re

import lab
import numpy as np
import pytest
from explorer_page import digest, places
from PIL import Image
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# What is the same code for all panels is looked at on one of them.
CONCEPTS = [place for place in places() if "00_start" not in place.notebook]
on_one_panel = pytest.mark.parametrize("place", CONCEPTS[:1], ids=str, indirect=True)
# What the panels of a notebook share is tried on its first.
FIRST = tuple({place.notebook: place for place in reversed(places())}.values())[::-1]
first_panels = pytest.mark.parametrize("place", FIRST, ids=str, indirect=True)


def on_first_panels(test):
    return pytest.mark.of_opened_notebooks(first_panels(test))


def on_a_few_panels(test):
    """What is the panels' own only in the names and colours that they bring is tried on a few of these."""
    return pytest.mark.sampled(2)(on_first_panels(test))


PLAYING = [place for place in places() if place.panel_class.play]
on_a_playing_panel = pytest.mark.parametrize("place", PLAYING[:1], ids=str, indirect=True)
on_a_few_playing_panels = pytest.mark.parametrize("place", PLAYING[::8], ids=str, indirect=True)


# Way of the mouse: from left to right, without a step back.
ONE_WAY = np.linspace(0.05, 0.95, 60)


@on_first_panels
def test_a_drag_shows_frames_in_step_with_their_numbers_and_rests_on_the_exact_picture(explorer):
    control = explorer.moving_control()
    explorer.drag(control, [0.0])
    explorer.settle()
    picture, numbers = explorer.shown(), explorer.numbers()
    explorer.warm_up(control)
    explorer.record()
    with explorer.film() as film:
        explorer.drag(control, ONE_WAY, pause=16)
        explorer.page.wait_for_timeout(700)
    notes = explorer.recorded()
    explorer.settle()

    # Never blank, never another size, never back.
    assert len(film) > 10
    assert not any(map(is_blank, film))
    assert len(set(notes["heights"])) == 1
    keys = [paint["key"] for paint in notes["paints"]]
    assert len(keys) >= min(10, len(explorer.values(control)) // 3)
    assert keys == sorted(keys)
    for paint in notes["paints"][:: max(1, len(keys) // 4)]:
        value = explorer.value_at(control, paint["key"])
        assert [text.replace("\xa0", " ") for text in paint["numbers"]] == explorer.wanted_numbers(**{control: value})
        assert digest(json.loads(paint["drawn"])) == explorer.twin_picture()
    # At rest the picture is the kernel's, byte for byte, and so are the numbers.
    assert explorer.shown() != picture
    assert explorer.numbers() != numbers
    assert explorer.shown() == explorer.wanted(**{control: explorer.value(control)})
    assert digest(json.loads(notes["paints"][-1]["drawn"])) == explorer.shown()
    expect(explorer.status).to_have_count(0)
    explorer.screenshot("dragged")


def is_blank(picture: np.ndarray) -> bool:
    return np.ptp(picture) < 64


@on_one_panel
def test_a_blank_picture_would_be_on_film(explorer):
    with explorer.film() as film:
        stage = explorer.whole.locator(".tp-stage")
        stage.evaluate("stage => { stage.style.visibility = 'hidden'; }")
        explorer.page.wait_for_timeout(100)
        stage.evaluate("stage => { stage.style.visibility = ''; }")
        explorer.page.wait_for_timeout(300)
    assert any(map(is_blank, film))
    assert not is_blank(film[-1])


@on_a_few_panels
def test_keys_alone_reach_a_slider_and_move_it(explorer):
    page, control = explorer.page, explorer.moving_control()
    handle, values = explorer.slider(control), explorer.values(control)
    explorer.select_cell()
    for _ in range(60):
        page.keyboard.press("Tab")
        if handle.evaluate("handle => handle === document.activeElement"):
            break
    assert handle.evaluate("handle => handle.matches(':focus-visible')")
    assert handle.evaluate("handle => getComputedStyle(handle).outlineStyle") == "solid"

    # A grip in the picture may have the same words.
    named = explorer.whole.get_by_label(explorer.twin.controls[control].description, exact=True)
    expect(named.and_(explorer.whole.locator("input"))).to_be_focused()
    last = len(values) - 1
    keys = {"Home": 0, "ArrowRight": 1, "ArrowUp": 2, "ArrowLeft": 1, "ArrowDown": 0, "End": last}
    seen = []
    for key, place in keys.items():
        page.keyboard.press(key)
        explorer.reach(control, values[place])
        assert explorer.shown() == explorer.wanted(**{control: values[place]})
        seen.append((explorer.shown(), *explorer.numbers()))
        said = explorer.whole.locator(f".tp-control:has([data-control={control}]) .tp-value").inner_text()
        expect(handle).to_have_attribute("aria-valuetext", said)
    assert len(set(seen)) > 2
    page.keyboard.press("PageDown")
    explorer.settle()
    assert explorer.value(control) in values[:last]


@on_first_panels
def test_presets_by_key_give_the_worked_numbers_and_reset_goes_back(explorer):
    picture, numbers = explorer.shown(), explorer.numbers()
    control = explorer.moving_control()
    explorer.drag(control, [0.5, 0.8])
    explorer.settle()
    explorer.twin.reset()
    explorer.twin.set(**{control: explorer.value(control)})
    for label, values in explorer.twin.presets.items():
        explorer.press(label)
        explorer.twin.set(**values)
        explorer.settle()
        assert explorer.numbers() == explorer.twin_numbers()
        assert explorer.shown() == explorer.twin_picture()
        button = explorer.whole.get_by_role("button", name=label, exact=True)
        expect(button).to_have_attribute("aria-pressed", "true")
    # Away from its setting a button is pressed no more.
    explorer.drag(control, [0.1, 0.4, 0.3])
    explorer.settle()
    if explorer.twin.state != {**explorer.twin.state, **values}:
        expect(button).to_have_attribute("aria-pressed", "false")
    explorer.press("Reset")
    explorer.settle()
    assert (explorer.shown(), explorer.numbers()) == (picture, numbers)


@on_one_panel
def test_a_way_there_and_back_ends_on_the_exact_picture(explorer):
    control = explorer.moving_control()
    explorer.drag(control, [0.0])
    explorer.settle()
    explorer.warm_up(control)
    explorer.drag(control, [*ONE_WAY[:20], *ONE_WAY[20::-1], 0.0], pause=8)
    explorer.settle()
    assert explorer.value(control) == explorer.values(control)[0]


@on_one_panel
def test_what_moves_along_does_so_at_once_and_is_at_rest_as_the_kernel_has_it(explorer):
    words = explorer.slider("reordering")
    explorer.tell("{panel}.set(reordering='none')")
    explorer.settle()
    explorer.warm_up("first")
    start = explorer.values("first").index(explorer.value("first"))
    end = len(explorer.values("first")) - 1
    way = np.linspace(start, end, 8) / end
    with explorer.grabbed("first") as move:
        move(way, pause=16)
        moved_along = words.evaluate("select => select.selectedIndex")
        # The hand rests, and the kernel follows; on the way back it keeps what has moved along.
        explorer.page.wait_for_timeout(600)
        move(way[::-1], pause=16)
        explorer.settle()
    explorer.settle()
    assert explorer.ask("{panel}.controls['reordering'].value") == "swap"
    assert words.evaluate("select => select.selectedIndex") == moved_along == 1


@on_first_panels
def test_a_button_has_the_last_word(explorer):
    control = explorer.moving_control()
    label, values = next(iter(explorer.twin.presets.items()))
    button = explorer.whole.get_by_role("button", name=label, exact=True)
    explorer.warm_up(control)
    with explorer.grabbed(control) as move:
        move([0.3, 0.35, 0.4], pause=16)
        # Long enough for a value to be told, and too short for an answer.
        explorer.page.wait_for_timeout(115)
        move([0.5, 0.55, 0.6], pause=16)
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    explorer.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    explorer.page.wait_for_timeout(300)
    explorer.settle()
    explorer.twin.reset()
    explorer.twin.set(**values)
    for name, value in values.items():
        assert explorer.ask(f"{{panel}}.controls[{name!r}].value == {value!r}"), name


@on_one_panel
def test_an_error_is_shown_and_the_next_good_value_takes_it_away(explorer):
    control = explorer.moving_control()
    picture, numbers = explorer.shown(), explorer.numbers()
    explorer.tell("def _broken(**state): raise ValueError('x: got a fault, want <none>')\n{panel}.compute = _broken")
    explorer.drag(control, [0.3])
    expect(explorer.status).to_contain_text("x: got a fault, want <none>")
    expect(explorer.status).to_have_attribute("role", "alert")
    assert (explorer.shown(), explorer.numbers()) == (picture, numbers)
    explorer.screenshot("error")

    explorer.tell("del {panel}.compute")
    explorer.drag(control, [0.7])
    expect(explorer.status).to_have_count(0)
    explorer.settle()
    assert explorer.shown() == explorer.wanted(**{control: explorer.value(control)})


@pytest.mark.sampled(1)
@on_a_few_playing_panels
def test_play_runs_and_stops(explorer):
    name = explorer.twin.play
    label = explorer.twin.controls[name].description
    play = explorer.whole.get_by_role("button", name=f"Play: {label}", exact=True)
    before = explorer.value(name)
    explorer.record()
    play.press("Enter")
    pause = explorer.whole.get_by_role("button", name=f"Pause: {label}", exact=True)
    explorer.page.wait_for_timeout(1500)
    pause.press("Enter")
    explorer.settle()
    keys = [paint["key"] for paint in explorer.recorded()["paints"]]
    stopped = explorer.value(name)
    step = explorer.twin.controls[name].step
    assert stopped >= before + 2 * step
    # Each value once, and none left out.
    assert list(dict.fromkeys(keys))[-int((stopped - before) / step) :] == list(range(before + step, stopped + 1, step))
    explorer.page.wait_for_timeout(500)
    assert explorer.value(name) == stopped
    assert explorer.shown() == explorer.wanted(**{name: stopped})


@pytest.mark.of_opened_notebooks
def test_nothing_sticks_out_of_a_narrow_page(explorer):
    lab.hide_sidebar(explorer.page)
    explorer.page.set_viewport_size({"width": 500, "height": 1000})
    explorer.page.wait_for_timeout(300)
    assert explorer.panel.bounding_box()["width"] <= 480
    sticking_out = explorer.panel.evaluate(
        """panel => {
            const edge = panel.getBoundingClientRect().right + 0.5;
            // Words over a small picture are cut at its edge.
            const parts = [...panel.querySelectorAll(":not(.tp-word)")];
            return parts.filter(node => node.getBoundingClientRect().right > edge)
                .map(node => node.className);
        }"""
    )
    explorer.screenshot("narrow")
    assert sticking_out == []
    assert explorer.picture.bounding_box()["width"] > 300


@on_a_few_panels
def test_a_dark_page_has_a_dark_picture_of_the_same_hues(explorer):
    light = _pixels(explorer)
    lab.set_theme(explorer.page, "JupyterLab Dark")
    expect(explorer.picture).to_have_css("filter", "none")
    explorer.page.wait_for_timeout(300)
    dark = _pixels(explorer)
    explorer.screenshot("dark")
    assert np.percentile(light, 80) > 240
    assert np.percentile(dark, 20) < 40


def _pixels(explorer) -> np.ndarray:
    picture = Image.open(io.BytesIO(explorer.picture.screenshot(animations="disabled")))
    return np.asarray(picture.convert("L"))


@on_a_few_panels
def test_the_picture_has_a_name_and_changed_numbers_are_said_at_rest(explorer):
    expect(explorer.whole.get_by_role("img", name=explorer.twin.alt, exact=True)).to_be_visible()
    expect(explorer.table).not_to_have_attribute("aria-live", re.compile("polite|assertive"))
    assert explorer.table.locator("th[scope=row]").count() == explorer.table.locator("td").count() > 0
    explorer.screenshot("wide")
    control = explorer.moving_control()
    explorer.drag(control, [0.5, explorer.other_end(control)])
    explorer.settle()
    expect(explorer.spoken).to_contain_text(explorer.changed_line())


@on_a_playing_panel
def test_less_motion_makes_play_a_step(explorer):
    explorer.page.emulate_media(reduced_motion="reduce")
    try:
        explorer.warm_up(explorer.twin.play)
        before = explorer.value(explorer.twin.play)
        play = explorer.whole.get_by_role("button", name=re.compile("^Play")).first
        play.press("Enter")
        explorer.page.wait_for_timeout(1000)
        explorer.settle()
        assert explorer.value(explorer.twin.play) == before + explorer.twin.controls[explorer.twin.play].step
    finally:
        explorer.page.emulate_media(reduced_motion="no-preference")


def test_without_the_front_end_the_kernel_draws_and_nothing_else_is_seen(chromium, site):
    place = places()[0]
    site.restore(place.notebook)
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.route("**/anywidget/static/**", lambda route: route.abort())
    lab.open_notebook(page, site.address, place.notebook)
    lab.run_all(page)
    panel = lab.cell(page, place.cell).locator(".tp-panel")
    image, table = panel.locator("img.widget-image"), panel.locator("table.tp-readout")
    image.wait_for()
    slider = panel.locator(".noUi-handle").first
    before = table.inner_text(), image.get_attribute("src")
    slider.press("End")
    expect(table).not_to_have_text(before[0])
    assert image.get_attribute("src") != before[1]
    value = lab.kernel(page, value=f"list({place.name}.state.values())")
    assert value != list(place.panel_class().state.values())
    assert panel.locator("canvas").count() == 0
    assert "rror" not in panel.inner_text()
    expect(table).to_have_attribute("aria-live", "polite")
    lab.shut_down_kernel(page)
    context.close()
