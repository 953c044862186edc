"""The page in a real browser, opened from disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from sardonyx.explore import explore

from .conftest import HOSTILE, Page, branches, floor_ge, functions, layers, profile_of, unequal, unheard
from .test_page import hostile

PATIENCE = 20.0  # seconds


class Shown:
    """A page in the browser, and what a person does with it."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser = browser
        browser.get_log("browser")  # what earlier pages have said
        browser.get(path.as_uri())
        self.until(lambda: self.run("return document.documentElement.dataset.ready === 'true'"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def until(self, true: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE
        while not (found := true()):
            assert time.monotonic() < end, "the page does not get there"
            time.sleep(0.02)
        return found

    def node(self, name: str) -> int:
        return int(self.run("return explorer.model.nodes.findIndex((n) => n.name === arguments[0])", name))

    def click_node(self, name: str) -> None:
        """A real click of the mouse on the node's place."""
        actions = pytest.importorskip("selenium.webdriver").ActionChains(self.browser)
        x, y = self.run(
            """
            const { graph } = explorer;
            graph.reveal([arguments[0]]);
            const [x, y] = graph.camera.toCanvas(...graph.place(arguments[0]));
            const box = graph.canvas.getBoundingClientRect();
            return [Math.round(x - box.width / 2), Math.round(y - box.height / 2)];
            """,
            self.node(name),
        )
        canvas = self.browser.find_element("id", "graph")
        actions.move_to_element_with_offset(canvas, x, y).click().perform()

    def press(self, *keys: str) -> None:
        pytest.importorskip("selenium.webdriver").ActionChains(self.browser).send_keys(*keys).perform()

    @property
    def selected(self) -> list[str]:
        found: list[str] = self.run(
            "return [...explorer.selection.nodes].map((n) => explorer.model.nodes[n].name)"
        )
        return found

    def rows(self, view: str, kind: str) -> list[str]:
        """The texts of the rows in view of a pane that are marked so."""
        selector = f'.pane[data-view="{view}"] .row.{kind}'
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((r) => r.textContent)", selector
        )
        return found

    def click_row(self, view: str, kind: str, text: str) -> None:
        """Click the first row in view that is marked so and contains the text; rows are replaced at each drawing."""
        script = "[...document.querySelectorAll(arguments[0])].find((r) => r.textContent.includes(arguments[1])).click()"
        self.run(script, f'.pane[data-view="{view}"] .row.{kind}', text)

    def show(self, number: int, view: str) -> None:
        """Let a pane show something else."""
        self.run(
            """
            const choice = document.querySelectorAll(".pane")[arguments[0]].querySelector("select");
            choice.value = arguments[1];
            choice.dispatchEvent(new Event("change"));
            """,
            number,
            view,
        )

    def no_errors(self) -> None:
        assert self.browser.get_log("browser") == []


def test_a_click_on_a_node_shows_its_lines_everywhere(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(floor_ge()))
    shown.click_node("Floor_0")
    shown.until(lambda: shown.selected == ["Floor_0"])
    (core,) = shown.until(lambda: shown.rows("core", "strong"))
    assert "core.floor" in core
    shown.until(lambda: any("roundp" in row or "frintm" in row for row in shown.rows("asm", "strong")))
    details = browser.find_element("id", "details")
    assert "float[batch, 8]" in details.text
    shown.until(lambda: "fused" in details.text)
    shown.no_errors()


def test_a_click_on_a_line_leads_to_the_node_and_to_the_other_stages(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(floor_ge()))
    shown.show(0, "loop")
    shown.click_node("Floor_0")
    rows = shown.until(lambda: shown.rows("asm", "strong"))
    chosen = next(row for row in rows if "roundp" in row or "frintm" in row)
    shown.click_row("asm", "strong", chosen)
    linked = shown.until(lambda: shown.rows("loop", "linked"))
    assert linked and all("loop.floor" in row for row in linked)
    assert shown.selected == ["Floor_0"]
    assert shown.run("return location.hash") == "#node=Floor_0"
    shown.press("\ue00c")  # Escape
    shown.until(lambda: not shown.selected)
    shown.no_errors()


def test_a_shared_kernel_shows_the_node_of_every_group(browser: Any, page: Page) -> None:
    """The lines of a kernel name the first group it was made for; others are shown in their place."""
    shown = Shown(browser, page(layers(3)))
    shown.show(0, "loop")
    for name in ("block0/Tanh_d", "block2/Tanh_d"):
        shown.click_node(name)
        shown.until(lambda name=name: shown.selected == [name])
        kernel = shown.run("return explorer.model.kernels[explorer.selection.kernel]")
        assert len(kernel["launches"]) == 3
        assert shown.until(lambda: shown.rows("loop", "strong"))
    shown.click_row("loop", "strong", "")
    shown.until(lambda: shown.rows("loop", "linked"))
    assert shown.selected == ["block2/Tanh_d"]
    shown.no_errors()


def test_search_by_keyboard(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(layers(4)))
    shown.press("/")
    shown.press("softmax")
    results = shown.until(lambda: browser.find_elements("css selector", "#results li"))
    assert len(results) == 4
    shown.press("\ue015", "\ue015", "\ue007")  # down, down, Enter
    shown.until(lambda: shown.selected == ["block1/Softmax_f"])
    browser.find_element("id", "graph").click()
    shown.press("n")
    shown.until(lambda: shown.selected == ["block2/Softmax_f"])
    shown.press("N")
    shown.until(lambda: shown.selected == ["block1/Softmax_f"])
    shown.press("/")
    shown.press("nothing at all like this")
    shown.until(lambda: "nothing found" in browser.find_element("id", "results").text)
    shown.no_errors()


def test_arrows_go_along_the_edges(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(floor_ge()))
    shown.click_node("Floor_0")
    shown.until(lambda: shown.selected == ["Floor_0"])
    shown.press("\ue015")
    shown.until(lambda: shown.selected == ["GreaterOrEqual_1"])
    shown.press("\ue013")
    shown.until(lambda: shown.selected in (["Floor_0"], ["y"]))
    shown.no_errors()


def test_the_overview_leads_to_every_place(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(layers(20)))
    overview = browser.find_element("id", "overview")
    shown.until(overview.is_displayed)
    actions = pytest.importorskip("selenium.webdriver").ActionChains(browser)
    actions.move_to_element_with_offset(overview, 0, overview.size["height"] // 2 - 3).click().perform()
    _, y = shown.run("return explorer.graph.place(arguments[0])", shown.node("f19"))
    top, bottom = shown.run("const [, top, , bottom] = explorer.graph.camera.view; return [top, bottom];")
    assert top < y < bottom
    shown.press("f")
    shown.until(lambda: not overview.is_displayed())
    shown.no_errors()


def test_shapes_and_search_by_shape(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(floor_ge()))
    shown.press("/")
    shown.press("bool[batch")
    items = shown.until(lambda: browser.find_elements("css selector", "#results li"))
    assert "GreaterOrEqual" in items[0].text
    shown.no_errors()


def test_passes_that_changed_nothing_are_hidden(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(layers(1)))
    shown.show(0, "passes")
    choice = '.pane[data-view="passes"] select[aria-label="Pass"] option'

    def labels() -> list[str]:
        return [option.text for option in browser.find_elements("css selector", choice)]

    assert labels() and not any("no change" in label for label in labels())
    assert shown.until(lambda: shown.rows("passes", "cut")) and shown.rows("passes", "add")
    browser.find_element("css selector", '.pane[data-view="passes"] input[type="checkbox"]').click()
    assert any("no change" in label for label in labels())
    shown.no_errors()


def test_memory_and_kernels(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(layers(2)))
    shown.show(0, "memory")
    shown.show(1, "kernels")
    tip = shown.until(lambda: browser.find_element("css selector", '[data-view="memory"] .tip').text)
    assert "if nothing were shared" in tip
    before = shown.run("return document.querySelector('.pane').view.total")
    shown.run(
        """
        const input = document.querySelector('.pane input[type="number"]');
        input.value = 64;
        input.dispatchEvent(new Event("input"));
        """
    )
    assert shown.run("return document.querySelector('.pane').view.total") == 4 * before
    row = browser.find_element("css selector", '[data-view="kernels"] tbody tr')
    row.click()
    assert row.get_attribute("aria-selected") == "true"
    assert shown.selected
    shown.no_errors()


def test_a_profile(browser: Any, page: Page) -> None:
    model = layers(1)
    profile = profile_of(explore(model))
    shown = Shown(browser, page(model, profile=profile))
    assert shown.run("return document.querySelector('#colours').value") == "time"
    shown.show(1, "times")
    cells = [
        [
            row.text
            for row in browser.find_elements("css selector", f'[data-view="{view}"] tbody td:first-child')
        ]
        for view in ("kernels", "times")
    ]
    slowest = len(profile["kernels"])
    assert cells[0] == [*(f"{n}.00 ms" for n in range(slowest, 0, -1)), ""]  # the entry point has none
    assert len(cells[1]) == len(profile["nodes"])
    browser.find_element("css selector", '[data-view="times"] tbody tr').click()
    (name,) = shown.selected
    most = max(profile["nodes"], key=lambda row: row["seconds"])
    assert name == most["name"]
    assert "of a run" in browser.find_element("id", "details").text
    shown.no_errors()


def test_names_are_shown_as_they_are(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(hostile()))
    shown.run("explorer.selection.select([arguments[0]])", shown.node(HOSTILE))
    shown.until(lambda: shown.rows("core", "strong"))
    assert HOSTILE in shown.run("return document.querySelector('#details').textContent")
    assert browser.title == "model - Sardonyx"
    for view in shown.run("return [...explorer.panes.views.keys()]"):
        shown.show(0, view)
    shown.no_errors()


def test_subgraphs(browser: Any, page: Page) -> None:
    shown = Shown(browser, page(branches()))
    name = shown.run("return explorer.model.nodes.find((n) => n.op === 'Sqrt').name")
    shown.click_node(name)
    shown.until(lambda: shown.selected == [name])
    assert shown.until(lambda: shown.rows("core", "strong"))
    shown.no_errors()


def test_functions(browser: Any, page: Page) -> None:
    """A call is selected as well by itself as by a node inside of the function, which all calls share."""
    shown = Shown(browser, page(functions()))
    shown.click_node("curve_0")
    assert shown.until(lambda: [row.split("=")[1].split()[0] for row in shown.rows("core", "strong")]) == [
        "core.abs",
        "core.sqrt",
    ]
    browser.find_element("partial link text", "Sqrt").click()
    shown.until(lambda: shown.selected == ["Sqrt_1"])
    rows = shown.until(lambda: shown.rows("core", "strong"))
    assert len(rows) == 2 and all("core.sqrt" in row for row in rows)
    shown.no_errors()


@pytest.mark.parametrize("model", [unequal(), unheard()], ids=["lowering", "import"])
def test_a_model_that_does_not_compile(browser: Any, page: Page, model: onnx.ModelProto) -> None:
    shown = Shown(browser, page(model))
    error = browser.find_element("id", "error")
    assert error.is_displayed() and "GreaterOrEqual_1" in error.text
    error.find_element("css selector", "button").click()
    shown.until(lambda: shown.selected == ["GreaterOrEqual_1"])
    if shown.run("return explorer.model.stages.length"):
        (row,) = shown.until(lambda: shown.rows("onnx", "strong"))
        assert "onnx.GreaterOrEqual" in row
    shown.no_errors()


@pytest.mark.slow
def test_three_thousand_nodes(browser: Any, page: Page) -> None:
    """Loads in a few seconds; a frame of the whole graph, of a part, and a selection take a fraction of one."""
    model: onnx.ModelProto = layers(500)
    shown = Shown(browser, page(model))
    assert shown.run("return explorer.graph.drawn.length") >= 3000
    shown.click_node("block250/Tanh_d")
    shown.until(lambda: shown.selected == ["block250/Tanh_d"])
    shown.until(lambda: any("core.tanh" in row for row in shown.rows("core", "strong")))
    times = shown.run(
        """
        const { graph, selection } = explorer;
        const time = (call) => {
          const start = performance.now();
          for (let i = 0; i < 5; i += 1) call();
          return (performance.now() - start) / 5;
        };
        const near = time(() => graph.drawNow());
        graph.fit();
        const all = time(() => graph.drawNow());
        const choice = time(() => selection.select([1000]));
        return { near, all, choice, rows: document.querySelectorAll(".row").length };
        """
    )
    assert times["rows"] < 500, times
    assert max(times["near"], times["all"], times["choice"]) < 500, times  # milliseconds, on a busy machine
    shown.no_errors()
