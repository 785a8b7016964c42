"""Helper processes that compute parts of a batch on the other cores.

Processes and not threads: a step is many short operations, and threads queue for the interpreter's lock between them.
Parameters, graph and gradients lie in memory that all processes map; parts and other results go through pipes. A worker
ends when its pipe closes, also if this process is killed.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.engine.answer import Answer, Unlisted
from dpmpn.engine.batch import QueryBatch, SampledEdges
from dpmpn.engine.learning import Gradients, Targets
from dpmpn.engine.machine import keep_freed_memory
from dpmpn.engine.model import Model, ModelOnGraph
from dpmpn.engine.settings import Horizon
from dpmpn.errors import RunError
from dpmpn.wording import memory

_ALIGNMENT = 64
_GRAPH_ARRAYS = ("offsets", "relations", "tails", "inverse")
_TARGET_ARRAYS = ("offsets", "entities", "known_offsets", "known")
Compute = Callable[[dict[str, Any], dict[str, np.ndarray]], tuple[dict[str, Any], dict[str, np.ndarray]]]
"""Makes the reply to a message: of its values and arrays, others."""


class Workers:
    """Processes that share this process's model and graph."""

    def __init__(self, model: Model, graph: KnowledgeGraph, count: int) -> None:
        handle, layout, self._shared_gradients = _share(model, graph, count)
        meta = {
            "model": _name_of(type(model)),
            "settings": _name_of(type(model.settings)),
            "values": asdict(model.settings),
            "n_entities": graph.n_entities,
            "n_relations": graph.n_relations,
            "file": f"/proc/self/fd/{handle}",
            "layout": layout,
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(count):
                self.processes.append(start_process("dpmpn.engine.workers", [handle]))
            for worker, process in enumerate(self.processes):
                ask_process(process, meta | {"worker": worker})
            for process in self.processes:
                reply_of(process)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(handle)

    def __len__(self) -> int:
        return len(self.processes)

    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [process.pid for process in self.processes]

    def start(
        self, worker: int, batch: QueryBatch, horizon: Horizon, targets: Targets | None, n_targets: int
    ) -> None:
        """Give a worker a part: gradients when there are targets, else its answer."""
        arrays = {
            "heads": batch.heads,
            "relations": batch.relations,
            "keys": batch.keys,
            "removed": batch.removed,
        }
        for step, edges in enumerate(batch.ignn_edges):
            arrays |= {
                f"heads{step}": edges.heads,
                f"relations{step}": edges.relations,
                f"tails{step}": edges.tails,
            }
        if targets is not None:
            arrays |= {f"targets.{name}": getattr(targets, name) for name in _TARGET_ARRAYS}
        meta = {"horizon": asdict(horizon), "n_targets": n_targets, "ignn_steps": len(batch.ignn_edges)}
        ask_process(self.processes[worker], meta, **arrays)

    def gradients(self, worker: int) -> Gradients:
        """Wait for the gradients of the part a worker was given; its next part overwrites them."""
        meta, arrays = reply_of(self.processes[worker])
        shared, rows = torch.from_numpy(self._shared_gradients[worker]), torch.from_numpy(arrays["rows"])
        return Gradients(meta["loss"], meta["reached"], shared, arrays["entities"], rows)

    def answer(self, worker: int) -> Answer:
        """Wait for the answer to the part a worker was given."""
        _, arrays = reply_of(self.processes[worker])
        unlisted = None
        if "of_entity" in arrays:
            unlisted = Unlisted(arrays["of_entity"], torch.from_numpy(arrays["by_profile"]))
        return Answer(arrays["offsets"], arrays["nodes"], torch.from_numpy(arrays["attention"]), unlisted)

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            end_process(process)
        self.processes = []


def start_process(module: str, handles: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """A process that runs a module, which is to `serve`; it inherits some open files."""
    # -P: a module of the user's in the current folder must not hide one of the standard library.
    command = [sys.executable, "-P", "-m", module]
    package = str(Path(__file__).parents[2])
    search = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": search}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, env=environment, pass_fds=handles, process_group=0
    )


def ask_process(process: subprocess.Popen[bytes], meta: dict[str, Any], **arrays: np.ndarray) -> None:
    """Send a process a message."""
    with contextlib.suppress(BrokenPipeError):  # a dead one is reported when its result is awaited
        send(_pipes(process)[0], meta, **arrays)


def reply_of(process: subprocess.Popen[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Wait for what a process has to say; its errors are raised here."""
    try:
        meta, arrays = receive(_pipes(process)[1])
    except Closed:
        code = process.wait()
        raise RunError(
            f"a worker process ended unexpectedly (exit code {code}); if memory ran out, lower "
            "memory_budget_mb or threads"
        ) from None
    if meta.get("divides_by_zero"):
        raise ZeroDivisionError("in a worker process")
    if "error" in meta:
        raise RuntimeError(f"a worker process failed:\n{meta['error']}")
    return meta, arrays


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process, which owns nothing that could be lost."""
    process.kill()
    to, back = _pipes(process)
    with contextlib.suppress(BrokenPipeError):
        to.close()
    back.close()
    process.wait()


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """What a process reads, and what it writes."""
    assert process.stdin is not None and process.stdout is not None  # both were asked for
    return process.stdin, process.stdout


def _share(model: Model, graph: KnowledgeGraph, count: int) -> tuple[int, dict[str, Any], list[np.ndarray]]:
    """Move the model's parameters into memory that can be mapped, beside a copy of the graph's arrays.

    Each worker has room for its gradients there: through a pipe, many would take as long as they took to compute.
    The memory is a file without a name: it goes when the last process that maps it ends, however that ends.
    """
    arrays = {name: p.detach().numpy() for name, p in model.named_parameters()}
    arrays |= {f"graph.{name}": getattr(graph, name) for name in _GRAPH_ARRAYS}
    layout, size = {}, 0
    for name, array in arrays.items():
        layout[name] = [array.dtype.str, array.shape, size]
        size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    handle = os.memfd_create("dpmpn")
    try:  # to have it now, and not at the first write
        os.posix_fallocate(handle, 0, max(size, 1))
    except OSError as error:
        os.close(handle)
        raise RunError(
            f"no memory for {memory(size)} that processes share: {error.strerror}; try --threads 1"
        ) from error
    # Rooms for gradients take memory when they are first written: those who only ask never do.
    dtype = model.entities.detach().numpy().dtype
    n_shared = sum(parameter.numel() for parameter in model.shared_parameters().values())
    for worker in range(count):
        layout[f"gradients.{worker}"] = [dtype.str, (n_shared,), size]
        size += -(-n_shared * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    os.ftruncate(handle, max(size, 1))
    views = _views(f"/proc/self/fd/{handle}", layout)
    for name, array in arrays.items():
        views[name][...] = array
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(views[name])
    return handle, layout, [views[f"gradients.{worker}"] for worker in range(count)]


def _views(path: str, layout: dict[str, Any]) -> dict[str, np.ndarray]:
    whole = np.memmap(path, np.uint8, "r+")
    views = {}
    for name, (dtype, shape, start) in layout.items():
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        views[name] = np.asarray(whole[start : start + n_bytes]).view(dtype).reshape(shape)
    return views


def _attach(meta: dict[str, Any]) -> tuple[ModelOnGraph[Any], np.ndarray]:
    """The model and graph of the parent, in the memory they share, and this worker's room for gradients there."""
    views = _views(meta["file"], meta["layout"])
    settings = _named(meta["settings"])(**meta["values"])
    model: Model = _named(meta["model"])(1, meta["n_relations"], settings)
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(views[name])
    arrays = {name: views[f"graph.{name}"] for name in _GRAPH_ARRAYS}
    for array in arrays.values():
        array.flags.writeable = False  # as in every graph, so that kernels compile once
    names = Vocabulary.numbered(meta["n_entities"]), Vocabulary.numbered(meta["n_relations"])
    graph = KnowledgeGraph(**arrays, entities=names[0], relation_names=names[1], provenance=None)
    return model.on(graph), views[f"gradients.{meta['worker']}"]


def _compute(
    on_graph: ModelOnGraph[Any], room: np.ndarray, meta: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    edges = tuple(
        SampledEdges(*(arrays[f"{part}{step}"] for part in ("heads", "relations", "tails")))
        for step in range(meta["ignn_steps"])
    )
    batch = QueryBatch(arrays["heads"], arrays["relations"], arrays["keys"], arrays["removed"], edges)
    horizon = Horizon(**meta["horizon"])
    if "targets.offsets" not in arrays:
        answer = on_graph.answer(batch, horizon)
        sent = {"offsets": answer.offsets, "nodes": answer.nodes, "attention": answer.attention.numpy()}
        if answer.unlisted is not None:
            sent |= {
                "of_entity": answer.unlisted.of_entity,
                "by_profile": answer.unlisted.probability.numpy(),
            }
        return {}, sent
    targets = Targets(*(arrays[f"targets.{name}"] for name in _TARGET_ARRAYS))
    result = on_graph.gradients(batch, targets, horizon, meta["n_targets"])
    room[:] = result.shared.numpy()
    sent = {"entities": result.entities, "rows": result.rows.numpy()}
    return {"loss": result.loss, "reached": result.reached}, sent


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _named(name: str) -> Any:
    """A class by its name, which comes from the parent process: the engine knows no model."""
    module, _, kind = name.partition(":")
    return getattr(import_module(module), kind)


# Messages between processes: one line of JSON, then the raw bytes of the arrays it names.


class Closed(Exception):
    """The other side has ended."""


def send(stream: IO[bytes], meta: dict[str, Any], **arrays: np.ndarray) -> None:
    """Write a message."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    shapes = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    stream.write(json.dumps({"meta": meta, "arrays": shapes}).encode() + b"\n")
    for array in arrays.values():
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a message; raises Closed at the end of the stream."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise Closed
    header = json.loads(line)
    arrays = {}
    for name, (dtype, shape) in header["arrays"].items():
        array = np.empty(shape, np.dtype(dtype))
        _read_into(stream, array)
        arrays[name] = array
    return header["meta"], arrays


def _read_into(stream: IO[bytes], array: np.ndarray) -> None:
    view = array.reshape(-1).view(np.uint8).data
    while len(view):
        count = stream.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise Closed
        view = view[count:]


def serve(prepare: Callable[[dict[str, Any], dict[str, np.ndarray]], Compute]) -> None:
    """Serve one parent process until it closes the pipe: its first message prepares what computes all others."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # the parent's to handle: this process ends when its pipe closes
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not reach the pipe
    logging.getLogger("dpmpn").disabled = True  # the parent says what is to be said
    torch.set_num_threads(1)
    keep_freed_memory()
    try:
        compute = prepare(*receive(stdin))
        send(stdout, {})
        while True:
            meta, arrays = receive(stdin)
            try:
                reply, sent = compute(meta, arrays)
            except ZeroDivisionError:  # said in this process as it would be in the parent
                reply, sent = {"divides_by_zero": True}, {}
            except Exception:
                reply, sent = {"error": traceback.format_exc()}, {}
            send(stdout, reply, **sent)
    except (Closed, BrokenPipeError):
        return


if __name__ == "__main__":
    serve(lambda meta, _: partial(_compute, *_attach(meta)))
