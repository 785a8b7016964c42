"""The page: one HTML file that plays the reasoning from t = 0 to T, without any other file and without network."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.reason import WhyNotData
from dpmpn.render.fragment import draw_fragment, filled, part, told_apart
from dpmpn.render.names import plain
from dpmpn.render.page_parts import answer_told, question_told


def draw_page(explanation: ExplanationData, why_not: Sequence[WhyNotData] = ()) -> str:
    """The explanation as the text of an HTML file; with `why_not` it says where others lost their attention."""
    explanation = told_apart(explanation)
    css = part("player.css") + part("page.css")
    script = part("player.js") + part("page.js")
    html, data = draw_fragment(explanation, why_not)
    return filled(
        part("page.html"),
        {
            "policy": _policy(css, script),
            "css": css,
            "script": script,
            "title": escape(plain(f"{explanation.question} {explanation.answer.label}")),
            "question": question_told(explanation.question),
            "answer": f"<bdi>{escape(plain(explanation.answer.label))}</bdi>",
            "verdict": answer_told(explanation),
            "reasoning": html,
            "data": _embedded(data),
        },
    )


def _embedded(data: dict[str, Any]) -> str:
    """Data as JSON that ends no script element, whatever the names hold."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _policy(css: str, script: str) -> str:
    """Nothing may be loaded or run but the page's own style and script."""
    return (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
