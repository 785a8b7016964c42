"""Asking in the browser, by mouse and by keyboard: answers, why, why not, the address, and files to keep."""

import csv
import io
import json
from pathlib import Path

import pytest
from pages import Open, Opened, served

from dpmpn.reasoner.reasoner import Reasoner

QUESTION = "?head=c7&relation=father"


def first_answer(page: Opened) -> str:
    page.sees(".answers button")
    return str(page.locator(".answers .label").first.inner_text())


def test_asking_by_mouse(opened: Open) -> None:
    page = opened()
    page.sees("#start", "Ask this graph")
    page.click("#head")
    page.locator("#head").press_sequentially("hild 7")
    page.sees("#head-list [role=option]", "Child 7")
    assert "the child of family 7" in page.locator("#head-list [role=option]").first.inner_text()
    page.click("#head-list [role=option]")
    page.sees("#about-title", "Child 7")
    page.sees("#about .facts", "Mother 7")
    page.click("#relation")
    options = page.locator("#relation-list [role=option] .label")
    page.sees("#relation-list [role=option]")
    assert options.first.inner_text() in ("Child 7 mother ?", "? knows Child 7")  # it has a fact of both
    assert {"? father Child 7", "Child 7 father ?"} <= set(options.all_inner_texts())
    options.get_by_text("Child 7 father ?", exact=True).click()
    page.click("#submit")
    first = first_answer(page)
    page.explained(first)
    assert page.view == {"head": "c7", "relation": "father"}
    assert page.locator(".answers button").first.get_attribute("aria-current") == "true"
    labels = page.locator(".answers .label").all_inner_texts()
    assert len(labels) > 1 and all(label.startswith("Father") for label in labels)  # no others fit
    page.sees("#answers", "Note: not shown, because no similar entity is the tail of any 'father' fact: ")
    assert page.locator(".answers b").first.inner_text().startswith("score 0.")
    page.sees(".answers .held-out", "test fact")
    assert page.calls("ask") == 1


def test_asking_by_keyboard_alone(opened: Open) -> None:
    page = opened()
    page.sees("#examples button")
    page.keyboard.press("Tab")
    assert page.focused("className") == "skip"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("father 3")
    page.sees("#head-list [role=option]", "Father 3")
    page.keyboard.press("ArrowDown")
    assert page.locator("#head").get_attribute("aria-activedescendant") == "head-list-0"
    assert page.locator("#head-list-0").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    page.sees("#about-title", "Father 3")
    assert (page.focused(), page.locator("#head").get_attribute("aria-expanded")) == ("head", "false")
    page.keyboard.press("Tab")
    page.keyboard.type("FATHER")
    page.sees("#relation-list [role=option]", "father")
    page.keyboard.press("Escape")
    assert page.locator("#relation-list").is_hidden()
    page.keyboard.press("ArrowDown")
    page.sees("#relation-list [role=option]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the first takes the question, the second asks it
    page.sees("#explanation-title")
    assert page.view == {"head": "f3", "relation": "father", "inverse": "1"}
    assert page.locator("#answers-title").inner_text() == "? father Father 3"
    page.locator(".answers button").nth(1).focus()
    page.keyboard.press("Enter")
    page.explained(page.locator(".answers .label").nth(1).inner_text())
    assert page.focused("dataset.name") == page.view["answer"]
    page.locator("#step").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.view["step"] == "1"
    page.locator("figure[data-view=pruned] .node").first.focus()
    page.sees("#detail .bars")
    page.keyboard.press("Enter")
    page.sees("#card .facts")
    assert page.focused() == "card-title"
    page.keyboard.press("Escape")
    assert page.locator("#card").is_hidden() and page.focused("getAttribute('class')").startswith("node")


def test_one_click_asks_an_example_and_new_answers_can_be_had_alone(opened: Open) -> None:
    page = opened()
    page.locator("#examples button", has_text="Child 7").first.click()
    page.sees(".answers button")
    page.goto(f"{page.url_begin}/?head=c1&relation=father")
    page.sees(".answers .known", "in the graph")
    page.check("#new")
    page.has(".answers .known", 0)
    assert page.view["new"] == "1" and page.focused() == "new"
    page.sees("#explanation-title")
    page.goto(f"{page.url_begin}/?head=hall&relation=member&new=1")
    page.sees("#explanation-title")
    page.has(".answers button", 10)
    page.get_by_text("Show more answers").click()
    page.sees(".answers li:nth-child(11)")


def test_what_was_measured_stands_beside_an_answer(opened: Open) -> None:
    (answer, *_) = Reasoner.load("demo").predict("Serbia", "in_subregion", top=1)
    with served("demo") as url:
        page = opened("?head=Serbia&relation=in_subregion", url=url)
        page.explained("Southern Europe")
        assert answer.answer == "Southern Europe" and answer.probability is not None
        assert page.locator(".answers b").first.inner_text() == f"{answer.probability:.0%}"
        page.sees(".answers .mark", f"{answer.probability_low:.0%} to ")
        page.sees(".answers .mark", f", {answer.cases} cases")
        page.sees("#explanation", f"It is right with probability {answer.probability:.0%}")
        page = opened("?head=Serbia&relation=neighbour_of", url=url)
        page.sees(".answers .known", "in the graph")
        known = page.locator(".answers button", has=page.locator(".known")).first
        assert known.locator("b").inner_text() == "known"


def test_the_answers_are_shown_before_the_picture_is_asked_for(opened: Open) -> None:
    page = opened("?head=c3")
    page.sees("#about-title")
    seen = []
    page.route(
        "**/api/v1/picture",
        lambda route: (seen.append(page.locator(".answers button").count()), route.continue_()),
    )
    page.locator("#about button", has_text="father").first.click()
    page.sees("#explanation-title")
    assert seen == [page.locator(".answers button").count()] and seen[0] > 1


def test_steps_are_played_views_switched_and_paths_shown(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("figure .node")
    assert page.locator("figure[data-view=full]").count() == 0  # it is drawn when it is wanted
    page.click("#next")
    page.click("#next")
    page.click("[data-path='0']")
    page.click("button[data-view=full]")
    page.sees("figure[data-view=full] .node")
    assert page.view == {"head": "c7", "relation": "father", "full": "1", "step": "1"}
    assert page.locator("#step").input_value() == "1" and page.focused("dataset.view") == "full"
    assert page.locator("[data-path='0']").get_attribute("aria-pressed") == "true"
    assert page.calls("picture") == 2
    page.click("button[data-view=pruned]")
    page.click("#whole")
    assert page.view == {"head": "c7", "relation": "father"}
    assert page.calls("picture") == 2
    page.click("#play")
    assert page.inner_text("#play") == "Pause"


def test_the_picture_can_be_enlarged_and_moved(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("figure .node")
    svg = page.locator("figure[data-view=pruned] svg").first

    def seen() -> list[float]:
        return [float(part) for part in svg.get_attribute("viewBox").split()]

    whole = seen()
    page.get_by_label("Zoom in").click()
    assert seen()[2] < whole[2]
    page.locator("figure .stage").focus()
    page.keyboard.press("0")
    assert seen() == whole
    page.keyboard.press("+")
    page.keyboard.press("+")
    before = seen()
    page.keyboard.press("ArrowRight")
    assert seen()[0] > before[0]
    box = svg.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = seen()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 10, steps=4)
    page.mouse.up()
    assert seen()[0] < before[0] and page.locator("#card").is_hidden()
    page.mouse.wheel(0, -100)
    assert seen()[2] < before[2]
    page.get_by_label("Show the whole picture").click()
    assert seen() == whole


def test_a_node_tells_its_facts_and_can_be_asked_from(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("figure .node")
    page.click("figure[data-view=pruned] .node[aria-label='Child 7']")
    page.sees("#card", "Identifier: c7")
    page.sees("#card .facts", "Child 7 mother Mother 7")
    page.get_by_text("Ask from here").click()
    page.sees("#about-title", "Child 7")
    assert page.view == {"head": "c7"} and page.focused() == "about-title"
    page.click("#about .facts button:has-text('Mother 7')")
    page.sees("#about-title", "Mother 7")


def test_which_facts_decide_and_what_if_one_were_not_there(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("#explanation-title")
    page.get_by_text("Which facts decide?").click()
    page.sees("#decisive", "Sufficient:")
    page.get_by_text("What if not?").first.click()
    page.sees("#decisive [role=status]", "before")


def test_why_not_is_asked_for_a_typed_entity_and_for_a_node(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("#explanation-title")
    page.click("#candidate")
    page.locator("#candidate").press_sequentially("father 2")
    page.sees("#candidate-list [role=option]", "Father 2")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.sees("#why-not-title", "Why not Father 2?")
    page.sees("#why-not-told .why-not", "Father 2")
    assert page.view["why-not"] == "f2" and page.focused() == "why-not-title"
    page.get_by_label("Close why not").click()
    page.has("#why-not-told[hidden]", 1)
    assert "why-not" not in page.view
    others = page.locator("figure[data-view=pruned] .node")
    answer = first_answer(page)
    node = next(node for node in others.all() if node.get_attribute("aria-label") != answer)
    node.click()
    page.get_by_text("Why not this one?").click()
    page.sees("#why-not-title", f"Why not {node.get_attribute('aria-label')}?")
    assert page.calls("ask") == 1


def test_the_same_is_asked_of_another_head(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("#explanation-title")
    page.fill("#head", "Child 4")
    page.sees("#head-list [role=option]", "Child 4")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.sees("#about-title", "Child 4")
    assert page.input_value("#relation") == "Child 4 father ?"
    page.click("#submit")
    page.sees("#answers-title", "Child 4 father ?")
    page.click("#submit")  # once more, which is nothing to go back to
    page.go_back()
    page.sees("#about-title", "Child 4")


def test_the_address_restores_the_view_and_back_goes_back(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("#explanation-title")
    second = page.locator(".answers .label").nth(1).inner_text()
    page.locator(".answers button").nth(1).click()
    page.explained(second)
    page.click("#next")
    page.click("#next")
    shared = page.url
    page.reload()
    page.explained(second)
    assert (page.url, page.locator("#step").input_value()) == (shared, "1")
    assert (page.input_value("#head"), page.input_value("#relation")) == ("Child 7", "Child 7 father ?")
    other = opened(shared.removeprefix(page.url_begin + "/"))
    other.explained(second)
    assert other.locator("#told").inner_text() == page.locator("#told").inner_text()
    page.go_back()
    page.explained(first_answer(page))
    page.go_forward()
    page.explained(second)
    assert page.locator("#step").input_value() == "1"
    page.click("#home")
    page.sees("#start")
    assert page.view == {} and page.input_value("#head") == ""
    page.go_back()
    page.explained(second)
    assert "Child 7 father ?" in page.title()


@pytest.mark.parametrize("kind", ["SVG", "PNG", "JSON", "CSV", "HTML"])
def test_explanations_are_saved(opened: Open, kind: str, tmp_path: Path) -> None:
    page = opened(f"{QUESTION}&answer=f7", accept_downloads=True)
    page.explained("Father 7")
    with page.expect_download() as found:
        page.get_by_role("link", name=kind).click()
    assert found.value.suggested_filename == f"Child-7-father-Father-7.{kind.lower()}"
    found.value.save_as(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    if kind == "JSON":
        assert json.loads(content)["answer"]["answer"] == "f7"
    elif kind == "CSV":
        assert {"sentence", "share", "support"} <= set(next(csv.DictReader(io.StringIO(content.decode()))))
    else:
        begins = {"SVG": b"<", "PNG": b"\x89PNG", "HTML": b"<!doctype"}
        assert content.startswith(begins[kind])


def test_the_model_card_is_told(opened: Open) -> None:
    page = opened()
    page.sees("#served", "family")
    page.click("#model summary")
    page.sees("#model-card", "n steps in agnn")
    page.sees("#model-card", "test facts")


def test_a_pattern_is_shown_alone_in_the_picture(opened: Open) -> None:
    page = opened(f"{QUESTION}&answer=f7")
    page.explained("Father 7")
    first = page.locator("#patterns button").first
    first.click()
    assert first.get_attribute("aria-pressed") == "true"
    page.sees("figure[data-view=pruned] .stage.path .edge.on")


def test_what_the_model_has_learnt_is_told_when_it_is_opened(opened: Open) -> None:
    page = opened(f"{QUESTION}&answer=f7")
    page.explained("Father 7")
    page.click(".learnt summary")
    page.sees(".learnt ol li")
    assert " if X " in page.locator(".learnt ol li").first.inner_text()
