"""Any text that is printed stays text, whatever the encoding of standard output: nothing in it acts on a terminal."""

import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.cli.output import Output, complain, print_data, table
from dpmpn.wording import on_terminal

SEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ufeff]")


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_printed_in_its_line(name: str) -> None:
    for errors in ("strict", "backslashreplace"):
        stream = io.TextIOWrapper(io.BytesIO(), "ascii", errors=errors)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            shown = Output(None)
            shown.say(name)
            rows = table("name", "number")
            rows.add_row(name, "1")
            shown.show(rows)
            complain(name)
            print_data(json.dumps(name))
            stream.flush()
        text = stream.detach().getvalue().decode("ascii")  # type: ignore[attr-defined]
        assert on_terminal(text) == text and not SEEN.search(text)
