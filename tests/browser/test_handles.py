"""Handles of pictures under a hand: dragged by the mouse and moved by keys, in JupyterLab."""

import pytest
from explorer_page import places
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

TOUCHABLE = [place for place in places() if place.panel_class.handles]


def on_a_few_panels(test):
    """What is the panels' own is where grips stand, which tests/explore/test_handles.py tries on all of them."""
    return pytest.mark.of_opened_notebooks(
        pytest.mark.sampled(5)(pytest.mark.parametrize("place", TOUCHABLE, ids=str, indirect=True)(test))
    )


@on_a_few_panels
def test_a_hand_drags_each_handle_and_value_picture_and_table_agree_at_rest(explorer):
    for name, handle in explorer.twin.handles.items():
        explorer.tell("{panel}.reset()")
        explorer.settle()
        grip = explorer.whole.locator(f'[role="slider"][data-handle="{name}"]')
        if not grip.is_visible():
            continue
        before = [explorer.value(control) for control in handle.controls]
        grip.scroll_into_view_if_needed()
        box = grip.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        stage = explorer.whole.locator(".tp-stage").bounding_box()
        # Towards the middle of the picture, where there is room.
        to = (stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2)
        explorer.page.mouse.move(x, y)
        explorer.page.wait_for_timeout(300)
        explorer.page.mouse.down()
        for part in range(1, 21):
            explorer.page.mouse.move(x + (to[0] - x) * part / 20, y + (to[1] - y) * part / 20)
            explorer.page.wait_for_timeout(25)
        explorer.page.wait_for_timeout(200)
        explorer.page.mouse.up()
        explorer.settle()
        moved = [explorer.value(control) for control in handle.controls]
        if before == moved:
            # The way to the middle was one that does not count for this handle: a key moves it.
            grip.focus()
            keys = ("ArrowRight", "ArrowLeft")
            explorer.page.keyboard.press(keys[before[0] == explorer.values(handle.controls[0])[-1]])
            explorer.settle()
            moved = [explorer.value(control) for control in handle.controls]
        assert before != moved, name
        expect(explorer.status).to_have_count(0)
    explorer.screenshot("touched")


@on_a_few_panels
def test_keys_move_a_handle(explorer):
    name, handle = next(iter(explorer.twin.handles.items()))
    grip = explorer.whole.locator(f'[role="slider"][data-handle="{name}"]')
    if not grip.is_visible():
        pytest.skip("it has no place in the first state")
    values = explorer.values(handle.controls[0])
    before = values.index(explorer.value(handle.controls[0]))
    grip.focus()
    step = 1 if before < len(values) - 1 else -1
    explorer.page.keyboard.press("ArrowRight" if step > 0 else "ArrowLeft")
    explorer.reach(handle.controls[0], values[before + step])
    explorer.settle()
