"""The page of an explanation, opened in a real browser as a person opens it: from a file, without network."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import small_reasoning
from reasoning import SERBIA, explained

from dpmpn.explain.explanation import Subgraph
from dpmpn.explain.rivals import Rival
from dpmpn.explain.why_not import WhyNotData
from dpmpn.render.formats import Explanation
from dpmpn.render.page import draw_fragment, draw_page, verdict
from dpmpn.render.text import full_caption, step_texts

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no page is opened")
HOSTILE = {
    "Serbia": "</script><script>document.title='broken'</script>",
    "Kosovo": "<img src=x onerror=\"document.title='broken'\">",
    "Europe": "\u202eابوروا 🌍 {{css}}",
    "Hungary": "a & b \"quoted\" 'so'\u2028\x00\x1b line",
    "neighbour": "--><svg onload=\"document.title='broken'\">",
    "region": "javascript:document.title='broken'",
}


class Opened:
    """A page in the browser, and all it complained of or asked for."""

    def __init__(self, page: sync_api.Page, path: Path) -> None:
        self.page, self.troubles, self.requests = page, [], []
        page.on("console", lambda message: self.troubles.append(message.text))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.clock.install()  # playing takes no time
        page.goto(path.as_uri())

    def __getattr__(self, name: str) -> object:
        return getattr(self.page, name)

    def t(self) -> str:
        return self.page.locator("#step").input_value()

    def told(self) -> str:
        return self.page.locator("#told").inner_text()

    def radius(self, name: str, view: str = "pruned") -> float:
        circle = self.page.locator(f'figure[data-view={view}] .node[aria-label="{name}"] circle:not(.seat)')
        return float(circle.evaluate("circle => parseFloat(getComputedStyle(circle).r)"))

    def is_in_sight(self, name: str) -> bool:
        """Whether a node is in that part of the picture which is not scrolled away."""
        stage = self.box("figure[data-view=pruned] .stage")
        node = self.box(f'figure[data-view=pruned] .node[aria-label="{name}"]')
        return stage["x"] <= node["x"] and node["x"] + node["width"] <= stage["x"] + stage["width"]

    def box(self, selector: str) -> dict[str, float]:
        box = self.page.locator(selector).bounding_box()
        assert box is not None
        return dict(box)


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: sync_api.Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of an explanation, and at the end sees that it complained of nothing and asked for nothing."""
    pages: list[Opened] = []

    def open_page(explanation: Explanation | None = None, **context: object) -> Opened:
        path = tmp_path / f"why {len(pages)}.html"
        path.write_text(draw_page(explanation or explained()), encoding="utf-8")
        # Without motion the pictures are at once what they become.
        context = {"reduced_motion": "reduce", "viewport": {"width": 1200, "height": 900}, **context}
        pages.append(Opened(browser.new_context(**context).new_page(), path))
        return pages[-1]

    yield open_page
    for page in pages:
        assert page.troubles == []
        assert [url for url in page.requests if url != page.url] == []
        page.context.close()


@needs_chromium
def test_the_slider_goes_through_the_steps_by_keyboard(opened: Open) -> None:
    page, steps = opened(), step_texts(explained())
    assert "All steps at once" in page.told()
    page.locator("#step").focus()
    for t in range(4):
        page.keyboard.press("ArrowRight")
        assert (page.t(), page.told()) == (str(t), steps[t])
    page.keyboard.press("ArrowRight")
    assert page.t() == "3"
    page.keyboard.press("ArrowLeft")
    assert (page.t(), page.told()) == ("2", steps[2])
    page.keyboard.press("Home")
    assert (page.t(), page.told()) == ("0", steps[0])
    assert page.locator("#step").get_attribute("aria-valuetext") == "step 0 of 3"


@needs_chromium
def test_the_slider_follows_the_mouse_and_the_buttons_step(opened: Open) -> None:
    page = opened()
    slider = page.box("#step")
    for part, t in ((0.99, "3"), (0.34, "1"), (0.01, "0")):
        page.mouse.click(slider["x"] + part * slider["width"], slider["y"] + slider["height"] / 2)
        assert page.t() == t
        assert page.locator(f".steps [data-t='{t}']").get_attribute("aria-current") == "step"
    page.click("#next")
    page.click("#next")
    assert page.t() == "2"
    page.click("#previous")
    assert page.t() == "1"
    page.click("#whole")
    assert "All steps at once" in page.told()
    assert page.locator(".steps [aria-current]").count() == 0


@needs_chromium
def test_playing_begins_at_0_and_ends_at_T(opened: Open) -> None:
    page = opened()
    page.click("#play")
    assert (page.t(), page.inner_text("#play")) == ("0", "Pause")
    page.clock.run_for(2000)
    assert page.t() == "1"
    page.clock.run_for(60_000)
    assert (page.t(), page.inner_text("#play")) == ("3", "Play")
    page.locator("#step").focus()
    page.keyboard.press("Space")  # plays again, from the beginning
    assert (page.t(), page.inner_text("#play")) == ("0", "Pause")
    page.keyboard.press("Space")
    page.clock.run_for(60_000)
    assert (page.t(), page.inner_text("#play")) == ("0", "Play")


@needs_chromium
def test_nodes_are_as_large_as_their_attention_and_lines_as_wide_as_the_flow_that_led_here(
    opened: Open,
) -> None:
    page = opened()
    page.click("#next")
    assert page.radius("Serbia") > 3 * page.radius("Europe")
    for _ in range(3):
        page.click("#next")
    assert page.radius("Europe") > 3 * page.radius("Serbia")
    widths = page.locator("figure[data-view=pruned] .line").evaluate_all(
        "lines => lines.map(line => [line.parentElement.getAttribute('aria-label'),"
        " parseFloat(getComputedStyle(line).strokeWidth)])"
    )
    assert max(widths, key=lambda width: width[1])[0] == "Kosovo region Europe"
    assert page.locator("figure[data-view=pruned] .dots").count() == 1


@needs_chromium
def test_full_and_pruned_can_be_switched(opened: Open) -> None:
    page = opened()
    pruned, full = (page.locator(f"figure[data-view={view}]") for view in ("pruned", "full"))
    assert (pruned.is_visible(), full.is_visible()) == (True, False)
    assert pruned.locator(".node").count() == 4
    page.click("#next")
    page.click("button[data-view=full]")
    assert (pruned.is_visible(), full.is_visible()) == (False, True)
    assert full.locator(".node").count() == 6
    assert page.t() == "0"
    assert page.radius("Serbia", "full") > 3 * page.radius("Budapest", "full")
    assert page.locator("button[data-view=full]").get_attribute("aria-pressed") == "true"


@needs_chromium
def test_a_path_is_shown_in_the_picture_and_let_go_again(opened: Open) -> None:
    page = opened()
    path = page.locator("[data-path='1']")
    assert "Hungary" in path.inner_text()
    path.click()
    shown = page.locator("figure[data-view=pruned] .node.on")
    assert sorted(node.get_attribute("aria-label") for node in shown.all()) == ["Europe", "Hungary", "Serbia"]
    dim = page.locator('figure[data-view=pruned] .node[aria-label="Kosovo"]')
    assert float(dim.evaluate("node => getComputedStyle(node).opacity")) < 0.3
    assert path.get_attribute("aria-pressed") == "true"
    path.click()
    assert float(dim.evaluate("node => getComputedStyle(node).opacity")) == 1
    assert path.get_attribute("aria-pressed") == "false"


@needs_chromium
def test_nodes_and_edges_tell_their_numbers_to_mouse_and_keyboard(opened: Open) -> None:
    page = opened()
    page.hover('figure[data-view=pruned] .node[aria-label="Kosovo"]')
    assert page.locator("#detail h3").inner_text() == "Kosovo"
    assert page.locator("#detail .bars span").all_inner_texts() == ["0%", "50%", "40%", "0%"]
    page.locator('figure[data-view=pruned] .node[aria-label="Kosovo"]').focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "Kosovo"
    page.locator('figure[data-view=pruned] .edge[aria-label="Kosovo region Europe"]').focus()
    assert page.locator("#detail h3").inner_text() == "Kosovo region Europe"
    assert page.locator("#detail .bars span").all_inner_texts() == ["0%", "30%", "40%"]


@needs_chromium
def test_hostile_names_are_shown_and_nothing_of_them_runs(opened: Open) -> None:
    page = opened(explained(rename=HOSTILE))
    for _ in range(4):
        page.click("#next")
    page.click("[data-path='0']")
    for node in page.locator("figure[data-view=pruned] .node").all():
        node.focus()
    assert page.title() != "broken"
    assert page.locator("img, svg[onload], [onerror], [style*=url]").count() == 0
    assert page.locator("script").count() == 2
    assert "<img src=x onerror=" in page.locator("[data-path='0']").inner_text()
    assert "{{css}}" in page.locator("h1").inner_text()
    assert "\u202e" not in page.told() + page.locator("h1").inner_text() + page.locator("#paths").inner_text()


@needs_chromium
def test_a_narrow_page_does_not_scroll_sideways(opened: Open) -> None:
    page = opened(explained(rename={"Kosovo": "k" * 300}), viewport={"width": 360, "height": 740})
    for view in ("full", "pruned"):
        page.click(f"button[data-view={view}]")
        page.click("#next")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#step").press("Home")
    assert page.is_in_sight("Serbia") and not page.is_in_sight("Europe")
    page.locator("#step").press("End")
    assert page.is_in_sight("Europe") and not page.is_in_sight("Serbia")
    page.locator("details").last.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@needs_chromium
def test_dark_and_light_follow_the_system(opened: Open) -> None:
    def brightness(page: Opened, selector: str, what: str) -> int:
        colour = page.locator(selector).first.evaluate(f"one => getComputedStyle(one).{what}")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    for page, is_dark in ((light, False), (dark, True)):
        assert (brightness(page, "html", "backgroundColor") < 200) == is_dark
        assert (brightness(page, ".node-label text", "fill") > 500) == is_dark
        if page.locator(".stage rect").count():  # what lifts labels off the lines
            assert (brightness(page, ".stage rect", "fill") < 200) == is_dark


@needs_chromium
def test_motion_is_shown_unless_the_reader_asked_for_less(opened: Open) -> None:
    for motion, moves in (("no-preference", True), ("reduce", False)):
        page = opened(reduced_motion=motion)
        page.click("#next")
        page.click("#next")
        animation = page.locator(".dots").first.evaluate("dots => getComputedStyle(dots).animationName")
        transition = page.locator("circle").first.evaluate("one => getComputedStyle(one).transitionDuration")
        assert (animation != "none") == moves
        assert ("0.6s" in transition) == moves


@needs_chromium
def test_without_scripts_picture_paths_and_steps_are_there(opened: Open) -> None:
    page = opened(java_script_enabled=False)
    assert page.locator("figure[data-view=pruned] .node").count() == 4
    assert page.locator("figure").first.is_visible()
    assert "Kosovo" in page.locator("#paths").inner_text()
    assert page.locator(".steps li").all_inner_texts() == step_texts(explained())
    assert not page.locator(".controls").is_visible()


@needs_chromium
def test_what_is_printed_shows_all_steps_and_no_controls(opened: Open) -> None:
    page = opened()
    page.click("#next")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert not page.locator(".controls").is_visible()
    assert page.locator("figure .dots").count() == 0
    assert page.locator("#paths").is_visible()


@needs_chromium
def test_an_answer_at_which_attention_stayed_has_a_page_too(opened: Open) -> None:
    steps = [[("a", "=", "a", 0.9), ("a", "likes", "b", 0.1)]]
    page = opened(explained(steps, "a", "likes", "a"))
    assert "where it began" in page.told()
    page.click("#play")
    page.clock.run_for(10_000)
    assert page.t() == "1"


def test_the_words_of_a_step_say_where_attention_is_and_what_the_answer_has() -> None:
    first, second, third, last = step_texts(explained())
    assert first == "Start: all of the attention is at Serbia, the entity the question is about."
    assert second == (
        "Step 1: 50% of the attention is at Kosovo, 30% at Hungary and 20% at Serbia. The strongest flow, 50%, "
        "came from Serbia along “Kosovo neighbour Serbia”. 20% stayed where it was. The answer has none yet."
    )
    assert third.endswith("The answer has 40%; 50% of what it ends with is already there.")
    assert last.endswith("The answer ends with 80%: its score.")


def test_the_verdict_gives_the_score_and_what_was_measured() -> None:
    measured = verdict(small_reasoning.explained(**small_reasoning.MEASURED))
    assert (
        "with score <strong>0.800</strong>. It is right with probability <strong>62%</strong> (40% to "
        in measured
    )
    assert (
        "measured on 1,200 held-out cases of this relation), or 87% if the graph lacks an answer" in measured
    )
    few = {**small_reasoning.MEASURED, "probability_if_missing": 0.63, "cases": 1}
    assert "measured on 1 held-out case of this relation). " in verdict(small_reasoning.explained(**few))
    unmeasured = verdict(small_reasoning.explained())
    assert "with score <strong>0.800</strong>." in unmeasured and "probability" not in unmeasured


def test_what_shares_a_label_is_told_apart_by_identifiers() -> None:
    explanation = explained()
    labels = {"Kosovo": "neighbour state", "Hungary": "neighbour state", "neighbour": "in", "region": "in"}
    full, pruned = (
        Subgraph(
            tuple(node._replace(label=labels.get(node.name, node.name)) for node in part.nodes),
            tuple(
                edge._replace(relation_label=labels.get(edge.relation, edge.relation)) for edge in part.edges
            ),
        )
        for part in (explanation.full, explanation.pruned)
    )
    explanation.__dict__.update(full=full, pruned=pruned)  # as found out in a graph with such labels
    html, data = draw_fragment(explanation)
    assert {"in (neighbour)", "in (region)"} <= set(data["relations"])
    assert "50% of the attention is at neighbour state (Kosovo), 30% at neighbour state (Hungary)" in html
    shown = [node["label"] for node in data["views"]["full"]["nodes"]]
    assert len(set(shown)) == len(shown)
    assert "<bdi>neighbour state (Kosovo)</bdi> <i><bdi>in (region)</bdi></i>" in html
    assert explanation.full is full


def test_the_caption_of_all_that_was_attended_says_how_many_edges_are_drawn() -> None:
    explanation = explained()
    n_edges = len(explanation.full.edges)
    assert full_caption(explanation.full, n_edges).endswith("consecutive steps.")
    assert full_caption(explanation.full, n_edges - 1).endswith(
        f"Of the {n_edges} edges {n_edges - 1} are drawn."
    )


@needs_chromium
@pytest.mark.parametrize("width", [1280, 800, 360])
def test_the_bars_of_many_steps_stay_in_their_column(opened: Open, width: int) -> None:
    steps = [[("a", "=", "a", 1.0)]] * 8 + [[("a", "likes", "b", 1.0)]]
    page = opened(explained(steps, "a", "likes", "b"), viewport={"width": width, "height": 800})
    column, bars = page.box(".controls"), [page.box(f"#gained li[data-t='{t}']") for t in (0, 9)]
    assert column["x"] <= bars[0]["x"] + 0.5
    assert bars[1]["x"] + bars[1]["width"] <= column["x"] + column["width"] + 0.5
    slider = page.box("#step")  # its first and last stop stand below the first and the last bar
    for bar, stop in zip(bars, (slider["x"] + 8, slider["x"] + slider["width"] - 8), strict=True):
        assert abs(bar["x"] + bar["width"] / 2 - stop) < 2


def test_a_page_is_one_file_whose_policy_allows_nothing_else() -> None:
    html = draw_page(explained(rename=HOSTILE))
    html.encode("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None and policy[1].startswith("default-src 'none';")
    assert "unsafe" not in policy[1]
    assert not re.search(r"<[^>]*\s(?:style|on\w+|src)=", html.replace(HOSTILE["Kosovo"], ""))
    assert draw_page(explained(rename=HOSTILE)) == html


def test_why_not_is_said_where_it_is_given() -> None:
    rival = Rival("<Europe>", "<Europe>", 0.5)
    why = WhyNotData(
        "<Asia>", "<Asia>", "Serbia", "Serbia", "out_competed", 3, 1, True, 1, 1, (0.0,) * 4, by=(rival,)
    )
    html = draw_page(explained(SERBIA), [why])
    assert (
        "&lt;Europe&gt; (0.500) is the first answer." in html and "Why not <bdi>&lt;Asia&gt;</bdi>?" in html
    )
    assert "Why not" not in draw_page(explained())


def test_patterns_come_before_the_paths_and_those_in_the_picture_can_be_shown_there() -> None:
    html = draw_page(small_reasoning.explained())
    assert html.index("Serbia borders another entity that is in Europe") < html.index("The strongest paths")
    shown = re.search(r'<section class="paths patterns".*?</section>', html, re.DOTALL)
    assert shown is not None and 'data-path="2"' in shown[0]  # after the two paths
    assert "nothing else speaks for it" in shown[0]
