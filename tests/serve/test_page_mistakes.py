"""What people and servers do wrong, in the browser: the page says what happened and what to do."""

import json
from pathlib import Path

import pytest
from pages import IMAGE, LONG, RIGHT_TO_LEFT, Open
from serving import serving

QUESTION = "?head=c7&relation=father"


def test_an_unknown_name_is_told_with_what_was_perhaps_meant(opened: Open) -> None:
    page = opened()
    page.fill("#head", "Chidl 7")
    page.fill("#relation", "father")
    page.keyboard.press("Enter")
    page.sees("#head-problem", "Nothing is called “Chidl 7”. Did you mean:")
    assert page.locator("#head").get_attribute("aria-invalid") == "true" and page.focused() == "head"
    page.locator("#head-problem button", has_text="Child 7").click()
    page.sees("#explanation-title")
    assert page.view["head"] == "c7" and page.locator("#head-problem").inner_text() == ""


def test_an_unknown_relation_is_told_with_what_was_perhaps_meant(opened: Open) -> None:
    page = opened("?head=c7&relation=fathr")
    page.sees("#relation-problem", "No relation is called “fathr”. Did you mean:")
    page.locator("#relation-problem button", has_text="father").click()
    page.sees("#explanation-title")
    assert page.view["relation"] == "father"


def test_a_relation_typed_by_hand_is_understood(opened: Open) -> None:
    page = opened()
    page.fill("#head", "child 7")
    page.fill("#relation", "Father")
    page.keyboard.press("Enter")
    page.sees("#answers-title", "Child 7 father ?")
    assert page.view == {"head": "c7", "relation": "father"}
    page.fill("#relation", "? KNOWS child 7")
    page.keyboard.press("Enter")
    page.sees("#answers-title", "? knows Child 7")
    for typed in ("Child 7 father ?", "father ?", "c7 FATHER ?", "child 7 father"):
        page.goto(f"{page.url_begin}/?head=c7")
        page.sees("#about-title")
        page.fill("#relation", typed)
        page.keyboard.press("Enter")
        page.sees("#answers-title", "Child 7 father ?")
        assert page.view == {"head": "c7", "relation": "father"}, typed


@pytest.mark.parametrize(("kind", "field"), [("relation", "relation"), ("entity", "head")])
def test_a_name_of_several_is_told_at_its_field(opened: Open, kind: str, field: str) -> None:
    page = opened()
    asked = {"head": "c7", "relation": "father"}
    message = f"'x' is the label of several: {asked[field]} (x), y (x); give the identifier of the {kind}"
    problem = {"error": {"code": "ambiguous_name", "message": message, "near": [asked[field], "y"]}}
    page.route("**/api/v1/ask", lambda route: route.fulfill(status=400, json=problem))
    given = {**asked, field: "x"}
    page.goto(f"{page.url_begin}/?head={given['head']}&relation={given['relation']}")
    page.sees(f"#{field}-problem", "are called “x”. Which one do you mean?")
    page.unroute("**/api/v1/ask")
    page.locator(f"#{field}-problem button").first.click()
    page.sees("#explanation-title")
    assert page.view == asked


def test_an_unknown_answer_leads_to_the_first_one(opened: Open) -> None:
    page = opened(f"{QUESTION}&answer=nobody-at-all")
    page.sees("#explanation .notice", "Nothing is called “nobody-at-all”.")
    page.get_by_text("Show the first answer").click()
    page.sees("#explanation-title")
    assert "answer" not in page.view


def test_empty_fields_are_told_and_a_head_alone_is_shown(opened: Open) -> None:
    page = opened()
    page.sees("#examples button")
    page.click("#submit")
    page.sees("#head-problem", "Type a name first")
    assert page.focused() == "head" and page.calls("ask") == 0
    page.fill("#head", "child 2")
    page.keyboard.press("Enter")
    page.sees("#about-title", "Child 2")
    page.fill("#head", "zzz")
    page.sees("#head-list", "No name contains “zzz”.")


def test_why_not_with_a_typing_mistake(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("#explanation-title")
    page.fill("#candidate", "Fater 2")
    page.keyboard.press("Enter")
    page.sees("#candidate-problem", "Did you mean:")
    page.locator("#candidate-problem button", has_text="Father 2").click()
    page.sees("#why-not-title", "Why not Father 2?")


def test_an_answer_that_was_not_reached_leads_to_why_not(opened: Open) -> None:
    page = opened(f"{QUESTION}&answer={LONG}")
    page.sees("#explanation .notice", "No attention reached")
    page.locator("#explanation .notice button").click()
    page.sees("#why-not-told .why-not")
    page.sees("#explanation-title")


def test_hostile_names_are_shown_and_nothing_of_them_runs(opened: Open) -> None:
    page = opened("?head=hub&relation=knows", viewport={"width": 390, "height": 800})
    page.sees("#explanation-title")
    for name in (IMAGE, RIGHT_TO_LEFT, LONG):
        page.fill("#head", name)
        page.sees("#head-list [role=option]", name.replace("\u202e", "")[:40])
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.sees("#about-title", name.replace("\u202e", "")[:40])
        assert page.view == {"head": name} and not page.scrolls_sideways()
        page.locator("#about .chips button").first.click()
        page.sees("figure .node")
        assert not page.scrolls_sideways()
        page.locator("figure .node").first.click()
        page.sees("#card .facts")
        page.get_by_text("Ask from here").click()
        page.sees("#about-title")
    assert page.title() != "broken" and page.locator("img, script:not([src])").count() == 0
    assert "\u202e" not in page.locator("body").inner_text()


def test_late_replies_do_not_replace_later_ones(opened: Open) -> None:
    page = opened()
    page.sees("#examples button")
    held = []
    page.route("**/api/v1/entities?q=c*", lambda route: held.append(route) if not held else route.continue_())
    page.locator("#head").press_sequentially("c")
    page.wait_for_timeout(300)
    page.locator("#head").press_sequentially("hild 4")
    page.sees("#head-list [role=option]", "Child 4")
    late = [{"name": "x", "label": "too late", "description": None, "facts": 1, "match": "prefix"}]
    held[0].fulfill(body=json.dumps(late), content_type="application/json")
    page.wait_for_timeout(150)
    assert "too late" not in page.locator("#head-list").inner_text()


def test_a_busy_server_is_asked_once_more(opened: Open) -> None:
    page = opened()
    page.sees("#examples button")
    busy = {"error": {"code": "overloaded", "message": "too many questions are waiting", "near": []}}
    refused = []

    def refuse(route, times: int) -> None:  # type: ignore[no-untyped-def]
        if len(refused) >= times:
            return route.continue_()
        refused.append(1)
        return route.fulfill(
            status=503, headers={"Retry-After": "0.1"}, body=json.dumps(busy), content_type="application/json"
        )

    page.route("**/api/v1/ask", lambda route: refuse(route, 1))
    page.goto(f"{page.url_begin}/{QUESTION}")
    page.sees("#explanation-title")
    page.unroute("**/api/v1/ask")
    refused.clear()
    page.route("**/api/v1/ask", lambda route: refuse(route, 2))
    page.goto(f"{page.url_begin}/?head=c6&relation=father")
    page.sees("#notice", "Too many questions are waiting.")
    page.get_by_text("Try again").click()
    page.sees("#explanation-title")


def test_a_server_that_is_gone_is_told_and_tried_again(opened: Open, family: tuple[Path, Path]) -> None:
    with serving(family[0]) as server:
        page = opened(QUESTION, url=server.url)
        page.sees("#explanation-title")
        server.stop.set()
        server.thread.join(20)
        page.click("figure .node >> nth=0")
        page.sees("#card .notice", "is not responding")
        page.locator(".answers button").nth(1).click()
        page.sees("#notice", "The server is not responding. Is it still running?")
        page.click("#notice button")  # still gone
        page.sees("#notice", "is not responding")


def test_a_token_is_asked_for_and_kept(opened: Open, family: tuple[Path, Path]) -> None:
    token = "a-token-that-nobody-guesses"
    with serving(family[0], token) as server:
        page = opened(f"{QUESTION}&answer=f7", url=server.url, accept_downloads=True)
        page.sees("#token", "This server requires a token")
        page.fill("#token-text", "wrong")
        page.keyboard.press("Enter")
        page.sees("#token-problem", "not the token")
        page.fill("#token-text", token)
        page.keyboard.press("Enter")
        page.sees("#explanation-title")
        assert page.locator("#token").is_hidden()
        with page.expect_download() as found:
            page.get_by_role("link", name="CSV").click()
        assert found.value.suggested_filename.endswith(".csv")
        page.reload()
        page.sees("#explanation-title")
        assert page.locator("#token").is_hidden() and token not in page.url
        page.evaluate("sessionStorage.clear()")
        page.reload()
        page.sees("#token")
        page.click("#token-cancel")
        page.sees("#notice", "requests that carry its token")


@pytest.mark.parametrize(
    "view", ["?step=999&head=c7&relation=father", "?head=c7&relation=father&step=-1&full=yes&x=1"]
)
def test_odd_addresses_are_read_as_well_as_can_be(opened: Open, view: str) -> None:
    page = opened(view)
    page.sees("figure .node")
    assert page.locator("#step").input_value() == page.view.get("step", "0")
    assert page.view.get("step", "3") == "3"
