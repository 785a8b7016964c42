"""A kept calibration that was changed in any way is measured again, never believed."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmpn.complete.calibration import Calibration, JudgedAnswers, calibrate
from dpmpn.complete.measure import _heading, _kept, digest_of

KEY = "0" * 64
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def measured() -> dict[str, Any]:
    draw = np.random.default_rng(0)
    attention = draw.random(200)
    rows = np.arange(200)
    answers = JudgedAnswers(
        attention, draw.random(200) < attention, np.ones(200), rows, rows % 3, np.zeros(200, np.int64)
    )
    return json.loads(json.dumps(calibrate(answers, np.full((3, 1), 70), asked=200).to_dict()))


MEASURED = measured()


def kept(content: bytes) -> Calibration | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calibration.json"
        path.write_bytes(content)
        return _kept(path, KEY)


def test_what_was_kept_is_believed() -> None:
    found = kept(json.dumps({**_heading(KEY, MEASURED), "calibration": MEASURED}).encode())
    assert found is not None and digest_of(found.to_dict()) == digest_of(MEASURED)


@quick
@given(st.binary(max_size=60), st.integers(0, 5000), st.integers(0, 60))
def test_changed_bytes_are_not_believed(new: bytes, at: int, gone: int) -> None:
    content = json.dumps({**_heading(KEY, MEASURED), "calibration": MEASURED}).encode()
    at %= len(content)
    changed = content[:at] + new + content[at + gone :]
    found = kept(changed)
    assert found is None or digest_of(found.to_dict()) == digest_of(MEASURED)


@quick
@given(st.data())
def test_forged_values_are_used_or_not_believed(data: st.DataObject) -> None:
    """Somebody who makes the digest fit gets what they wrote, or nothing; never an error."""
    forged = json.loads(json.dumps(MEASURED))
    inner: Any = forged
    while isinstance(inner, dict | list) and inner:
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(inner[key], dict | list) or data.draw(st.booleans()):
            inner[key] = data.draw(values)
            break
        inner = inner[key]
    found = kept(json.dumps({**_heading(KEY, forged), "calibration": forged}).encode())
    if found is not None:
        found.estimates(np.array([0.1, 0.9]), np.array([0, 2]), np.zeros(2, np.int64))
