"""How the page looks and is heard: narrow, dark, and for those who use other means than eyes and a mouse."""

import pytest
from pages import Open, Opened

QUESTION = "?head=c7&relation=father"
STATES = {
    "start": ("", "#examples button"),
    "about": ("?head=c7", "#about .facts"),
    "explained": (f"{QUESTION}&why-not=f2", "#why-not-told .bars, #why-not-told .why-not"),
    "full": (f"{QUESTION}&full=1&step=2", "figure[data-view=full] .node"),
    "mistaken": ("?head=chidl7&relation=father", "#head-problem button"),
}


def serious(page: Opened) -> list[str]:
    """What axe finds fault with."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    violations = axe.Axe().run(page.page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0]['failureSummary']}"
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_other_means(opened: Open, scheme: str) -> None:
    states = STATES if scheme == "light" else {name: STATES[name] for name in ("explained", "mistaken")}
    for view, shown in states.values():
        page = opened(view, color_scheme=scheme)
        page.sees(shown)
        if "relation" in view and "chidl" not in view:
            page.sees("#explanation-title")
            page.locator("figure:visible .node").first.click()
            page.sees("#card .facts")
        assert serious(page) == [], view
    page = opened()
    page.locator("#head").press_sequentially("child")
    page.sees("#head-list [role=option]")
    page.keyboard.press("ArrowDown")
    assert serious(page) == []


def test_a_narrow_page_does_not_scroll_sideways(opened: Open) -> None:
    for view, shown in STATES.values():
        page = opened(view, viewport={"width": 360, "height": 740}, has_touch=True)
        page.sees(shown)
        assert not page.scrolls_sideways(), view
    page = opened(QUESTION, viewport={"width": 360, "height": 740}, has_touch=True)
    page.sees("#explanation-title")
    page.locator(".answers button").nth(1).tap()
    page.explained(page.locator(".answers .label").nth(1).inner_text())
    assert page.locator("#explanation-title").bounding_box()["y"] < 300
    page.click("#model summary")
    page.sees("#model-card")
    assert not page.scrolls_sideways()


def test_the_picture_can_be_skipped_to_the_slider(opened: Open) -> None:
    page = opened(f"{QUESTION}&full=1")
    page.sees("figure[data-view=full] .node")
    page.locator("#whole").focus()
    page.keyboard.press("Tab")
    box = page.locator(".reasoning .skip").bounding_box()
    assert page.focused("textContent") == "Skip the picture" and box["x"] >= 0
    before = page.url
    page.keyboard.press("Enter")
    assert page.focused() == "step" and page.url == before


def test_landmarks_and_headings_are_there(opened: Open) -> None:
    page = opened(QUESTION)
    page.sees("#explanation-title")
    for role in ("banner", "search", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1, role
    assert page.locator("h1").count() == 1
    page.has("#status:has-text('Explanation of')", 1)


def test_the_policy_is_strict_and_all_files_are_the_servers_own(opened: Open) -> None:
    page = opened()
    policy = page.request.get(page.url_begin).headers["content-security-policy"]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy and "http" not in policy
    for name in ("player.js", "player.css", "explorer.js"):
        assert page.request.get(f"{page.url_begin}/page/{name}").ok
    assert page.locator("[style], script:not([src]), style").count() == 0


def test_without_scripts_the_page_says_so(opened: Open) -> None:
    page = opened(java_script_enabled=False)
    assert "needs JavaScript" in page.locator("main").inner_text()
