"""Whatever is in the files of a run folder: it loads with the weights that were saved, or a sentence refuses it."""

import contextlib
import functools
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmpn.config import Config
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.errors import RunError
from dpmpn.models import build_model
from dpmpn.train.checkpoint import (
    LoopState,
    LossWindow,
    Validation,
    load_checkpoint,
    loop_state,
    save_best,
    save_checkpoint,
)
from dpmpn.train.optimiser import Adam
from dpmpn.train.run_folder import RunFolder, append_line, read_lines, rewind_lines

STATE = LoopState(
    7, 1.5, 1.25, Validation(7, 0.5, {"coverage": 0.5, "realistic": {"mrr": 0.5}}), 1, 7, False, 2,
    LossWindow(3, 2.5, 1, 0.5),
)  # fmt: skip
NAMES = ["checkpoint.json", "best.json", "checkpoint", "best", "config.json", "metrics.jsonl"]
MANIFESTS = ["checkpoint.json", "best.json", "config.json"]
fuzzed = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

_temporary = tempfile.TemporaryDirectory(prefix="dpmpn-fuzz-")  # removed when the process ends


@functools.cache
def run_path() -> Path:
    """A small run folder; each case puts back what it changed."""
    path = Path(_temporary.name) / "run"
    dataset = dataset_from_tuples([("a", "r", "b"), ("b", "s", "c")], name="small")
    config = Config().replace(n_dims=3, n_dims_att=2)
    run = RunFolder.create(path, dataset, config)
    network = build_model(dataset.graph.n_entities, dataset.graph.n_relations, config.model, 1)
    for line in range(2):
        append_line(run.metrics, {"kind": "train", "loss": line / 3})
    save_checkpoint(path, network, Adam(network, config.training), STATE)
    save_best(path, network, STATE.position, STATE.best)
    return path


def file_of(name: str) -> Path:
    path = run_path()
    return path / name if "." in name else next(path.glob(f"{name}-*.safetensors"))


def load_all() -> tuple[Any, ...]:
    """Read everything a run folder says, as training, asking and a person who plots its metrics would."""
    run = RunFolder.open(run_path())
    best, last, resumed = run.model("best"), run.model("last"), run.model("last")
    optimiser = Adam(resumed, run.config.training)
    state = load_checkpoint(run.path, resumed, optimiser, loop_state)
    assert type(state.position) is int and type(state.lines) is int
    read_lines(run.metrics)
    kept = run.metrics.read_bytes()
    rewind_lines(run.metrics, state.lines)
    run.metrics.write_bytes(kept)
    json.dumps({"best": state.best.mrr if state.best else None}, allow_nan=False)
    return tuple(x.clone() for network in (best, last, resumed) for x in network.state_dict().values())


@functools.cache
def expected() -> tuple[Any, ...]:
    return load_all()


@contextlib.contextmanager
def changed(*contents: tuple[Path, bytes]):
    """Files with other content for a while."""
    before = [(path, path.read_bytes()) for path, _ in contents]
    try:
        for path, content in contents:
            path.write_bytes(content)
        yield
    finally:
        for path, content in before:
            path.write_bytes(content)


def loads_as_saved_or_is_refused() -> bool:
    """Whether it loads; anything but a sentence, or other weights, is a failure."""
    try:
        found = load_all()
    except RunError as refusal:
        assert len(str(refusal)) < 2_000 and str(refusal).strip()
        return False
    assert all(torch.equal(a, b) for a, b in zip(found, expected(), strict=True))
    return True


@st.composite
def mutations(draw: st.DrawFn, content: bytes) -> bytes:
    """Other bytes: some flipped, cut off, put in, or all replaced."""
    kind = draw(st.sampled_from(["flip", "flip", "cut", "insert", "replace", "double"]))
    if kind == "replace":
        return draw(st.binary(max_size=200))
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    if kind == "cut":
        return content[:at]
    if kind == "insert":
        return content[:at] + draw(st.binary(min_size=1, max_size=20)) + content[at:]
    if kind == "double":
        return content + content[at:]
    places = draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(1, 255)), min_size=1))
    flipped = bytearray(content)
    for place, bits in places:
        flipped[place] ^= bits
    return bytes(flipped)


@fuzzed
@given(st.sampled_from(NAMES), st.data())
def test_changed_bytes(name: str, data: st.DataObject) -> None:
    expected()
    path = file_of(name)
    with changed((path, data.draw(mutations(path.read_bytes())))):
        loads_as_saved_or_is_refused()


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**63 - 1, 2**63, 10**15, 10**30, 10**300]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["", "..", "\x00", "\ud800", "/etc/passwd", "best-000000000007.safetensors", "x" * 500]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
)


def places(values: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a JSON tree, itself included."""
    inner = (
        values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    )
    return [at, *(place for key, value in inner for place in places(value, (*at, key)))]


def replaced(values: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A JSON tree with one value replaced, or removed where the new one is `...`."""
    if not place:
        return new
    key, *rest = place
    copy = dict(values) if isinstance(values, dict) else dict(enumerate(values))
    if not rest and new is ...:
        del copy[key]
    else:
        copy[key] = replaced(copy[key], tuple(rest), new)
    return copy if isinstance(values, dict) else list(copy.values())


@fuzzed
@given(st.sampled_from(MANIFESTS), st.data())
def test_replaced_values(name: str, data: st.DataObject) -> None:
    expected()
    path = file_of(name)
    values = json.loads(path.read_bytes())
    place = data.draw(st.sampled_from(places(values)))
    new = data.draw(st.one_of(ODD, st.just(...) if place else st.nothing()))
    with changed((path, json.dumps(replaced(values, place, new)).encode())):
        loads_as_saved_or_is_refused()


def with_tensors(name: str, content: bytes) -> tuple[tuple[Path, bytes], tuple[Path, bytes]]:
    """A file of tensors and the manifest that fits it: what a stranger made, not what an accident left."""
    path, manifest = file_of(name), file_of(f"{name}.json")
    values = json.loads(manifest.read_bytes())
    values |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return (path, content), (manifest, json.dumps(values).encode())


def loads_or_is_refused() -> None:
    """Foreign tensors of the right shapes may load; nothing else may."""
    with contextlib.suppress(RunError):
        shapes = [(x.shape, x.dtype) for x in load_all()]
        assert shapes == [(x.shape, x.dtype) for x in expected()]


@fuzzed
@given(st.sampled_from(["checkpoint", "best"]), st.data())
def test_foreign_tensors(name: str, data: st.DataObject) -> None:
    expected()
    with changed(*with_tensors(name, data.draw(mutations(file_of(name).read_bytes())))):
        loads_or_is_refused()


def header_and_body(name: str) -> tuple[dict[str, Any], bytes]:
    content = file_of(name).read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


@fuzzed
@given(st.sampled_from(["checkpoint", "best"]), st.data(), st.none() | st.integers(0, 2**64 - 1))
def test_foreign_headers(name: str, data: st.DataObject, length: int | None) -> None:
    expected()
    header, body = header_and_body(name)
    place = data.draw(st.sampled_from(places(header)))
    kinds = st.sampled_from(["F32", "F64", "BF16", "F8_E4M3", "BOOL", "U8", "C64", "F4", "I64"])
    shape = st.lists(st.sampled_from([0, 1, 3, 10**15, 2**62]), max_size=5)
    header = replaced(header, place, data.draw(ODD | kinds | shape))
    text = json.dumps(header).encode()
    size = (len(text) if length is None else length).to_bytes(8, "little")
    with changed(*with_tensors(name, size + text + body)):
        loads_or_is_refused()


DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


@pytest.mark.parametrize("name", [*MANIFESTS, "metrics.jsonl"])
@pytest.mark.parametrize(
    "content", [DEEP, b"[" * 100_000, b'{"version": ' + b"9" * 5000 + b"}\n", b"\xff\xfe\n"]
)
def test_json_that_no_reader_likes(name: str, content: bytes) -> None:
    expected()
    with changed((file_of(name), content)):
        assert not loads_as_saved_or_is_refused() or name == "metrics.jsonl"


@pytest.mark.parametrize("name", ["checkpoint.json", "best.json"])
def test_a_newer_version(name: str) -> None:
    expected()
    values = json.loads(file_of(name).read_bytes()) | {"version": 3, "news": [1]}
    with changed((file_of(name), json.dumps(values).encode())), pytest.raises(RunError, match="update dpmpn"):
        load_all()


def test_absurd_sizes_take_no_memory() -> None:
    expected()
    header, body = header_and_body("best")
    for length in (2**60, 2**64 - 1, 10**9):
        with changed(*with_tensors("best", length.to_bytes(8, "little") + body)), pytest.raises(RunError):
            load_all()
    tensor = header["network.entities"]
    for shape in ([10**15, 3], [2**62, 4], [10**15, 0]):
        text = json.dumps(header | {"network.entities": tensor | {"shape": shape}}).encode()
        content = len(text).to_bytes(8, "little") + text + body
        with changed(*with_tensors("best", content)), pytest.raises(RunError):
            load_all()
    config = json.loads(file_of("config.json").read_bytes())
    for n_dims in (10**4, 10**6, 10**12, 2**62, 2**70):
        text = json.dumps(replaced(config, ("model", "n_dims"), n_dims)).encode()
        with changed((file_of("config.json"), text)), pytest.raises(RunError):
            load_all()


def test_an_unchanged_folder_loads() -> None:
    assert loads_as_saved_or_is_refused()
