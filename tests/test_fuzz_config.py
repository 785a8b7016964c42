"""Settings from anywhere: a TOML file, a run's config.json or a command line give a configuration, or a sentence."""

import json
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmpn.config import Config, all_settings, from_dict, load_preset, to_dict, with_overrides
from dpmpn.errors import ConfigError, DpmpnError

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEYS = sorted({setting.key for setting in all_settings()})
SECTIONS = sorted(to_dict(Config()))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["strong", "paper", "none", "1e9"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
PIECES = [f"[{section}]" for section in SECTIONS] + [f"{key} =" for key in KEYS]
PIECES += [
    "\n",
    " ",
    "1",
    "-1",
    "1e400",
    "nan",
    "inf",
    '"x"',
    '"strong"',
    "true",
    "[1, 2]",
    "{a = 1}",
    "=",
    "#",
    "'''",
    "\0",
    "\ufeff",
]


@quick
@given(
    st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from(PIECES), max_size=20).map(lambda s: "".join(s).encode()),
    )
)
def test_a_file_gives_a_configuration_or_a_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.toml"
        path.write_bytes(content)
        try:
            config = load_preset(path)
        except ConfigError as error:
            assert str(path) in str(error)
        else:
            assert from_dict(json.loads(json.dumps(to_dict(config)))) == config
            tomllib.loads(content.decode())


@quick
@given(st.dictionaries(st.sampled_from(KEYS), values, min_size=1, max_size=3))
def test_overrides_give_a_configuration_or_a_sentence(overrides: dict[str, Any]) -> None:
    try:
        config = with_overrides(Config(), overrides)
    except DpmpnError as error:
        assert str(error)
    else:
        assert from_dict(json.loads(json.dumps(to_dict(config)))) == config


@quick
@given(
    st.dictionaries(
        st.sampled_from(SECTIONS) | st.text(max_size=3),
        st.dictionaries(st.sampled_from(KEYS), values, max_size=2) | values,
        max_size=3,
    )
)
def test_what_a_run_holds_gives_a_configuration_or_a_sentence(held: dict[str, Any]) -> None:
    complete = {section: dict(of_section) for section, of_section in to_dict(Config()).items()}
    for section, new in held.items():
        if isinstance(new, dict) and isinstance(complete.get(section), dict):
            complete[section].update(new)
        else:
            complete[section] = new
    try:
        assert isinstance(from_dict(complete), Config)
    except DpmpnError as error:
        assert str(error)
