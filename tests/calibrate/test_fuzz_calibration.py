"""A kept calibration that was changed in any way is not believed; a forged one is used or refused, never an error."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmpn.ask.measure import FILE, _heading, digest_of, kept
from dpmpn.calibrate.calibration import Calibration, Cases, Evidence, calibrate

KEY = "0" * 64
N_RELATIONS = 3
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def measured() -> Calibration:
    rng, n = np.random.default_rng(0), 200
    lacks, score = rng.random(n) < 0.5, rng.random(n)
    rows, ones = np.arange(n), np.ones(n)
    marks = np.ones(n, bool)
    evidence = Evidence(rows % N_RELATIONS, rows % 2, ones, ones, rows, score, marks, rows % 3 == 0)
    found = calibrate(
        Cases(evidence, lacks, lacks & (rng.random(n) < score), np.ones(n, bool), ones), N_RELATIONS, n
    )
    assert found is not None
    return found


FOUND = measured()
PLAIN = json.loads(json.dumps(FOUND.to_dict()))
ASKED = Evidence(
    np.arange(2),
    np.ones(2, np.int64),
    np.ones(2),
    np.full(2, 0.7),
    np.arange(2),
    np.array([0.1, 0.6]),
    np.ones(2, bool),
    np.zeros(2, bool),
)


def read(content: bytes) -> Calibration | None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_bytes(content)
        return kept(Path(folder), KEY)


def test_what_was_kept_is_believed() -> None:
    found = read(json.dumps({**_heading(KEY, PLAIN), "calibration": PLAIN}).encode())
    assert found is not None and digest_of(found.to_dict()) == digest_of(PLAIN)


@quick
@given(st.binary(max_size=60), st.integers(0, 5000), st.integers(0, 60))
def test_changed_bytes_are_not_believed(new: bytes, at: int, gone: int) -> None:
    content = json.dumps({**_heading(KEY, PLAIN), "calibration": PLAIN}).encode()
    at %= len(content)
    found = read(content[:at] + new + content[at + gone :])
    assert found is None or digest_of(found.to_dict()) == digest_of(PLAIN)


@quick
@given(st.data())
def test_forged_values_are_used_or_not_believed(data: st.DataObject) -> None:
    """Somebody who makes the digest fit gets what they wrote, or nothing; never an error, and a probability is one."""
    forged = json.loads(json.dumps(PLAIN))
    inner: Any = forged
    while isinstance(inner, dict | list) and inner:
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(inner[key], dict | list) or data.draw(st.booleans()):
            inner[key] = data.draw(values)
            break
        inner = inner[key]
    found = read(json.dumps({**_heading(KEY, forged), "calibration": forged}).encode())
    if found is not None and found.fits(N_RELATIONS):
        with np.errstate(all="ignore"):
            said = found.estimates(ASKED).probability
        assert ((said >= 0) & (said <= 1)).all()
