"""Helper processes that compute parts of a batch on the other cores.

Processes and not threads: a step is many short operations, and threads queue for the interpreter's lock between them.
Parameters, graph and gradients lie in memory that all processes map; parts and other results go through pipes. A worker
ends when its pipe closes, also if this process is killed.
"""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO

import numpy as np
import torch

from dpmpn.config import Horizon, ModelConfig
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.engine.answer import Answer, Unlisted
from dpmpn.engine.batch import QueryBatch, SampledEdges
from dpmpn.engine.gradients import Gradients
from dpmpn.engine.heap import keep_freed_memory
from dpmpn.engine.targets import Targets
from dpmpn.engine.wire import Closed, receive, send
from dpmpn.errors import RunError
from dpmpn.models.paper.network import AnyNetwork, build_network
from dpmpn.models.paper.parts import Computer, computer_for

_ALIGNMENT = 64
_GRAPH_ARRAYS = ("offsets", "relations", "tails", "inverse")
_TARGET_ARRAYS = ("offsets", "entities", "known_offsets", "known")


class Workers:
    """Processes that share this process's network and graph."""

    def __init__(self, network: AnyNetwork, graph: KnowledgeGraph, count: int) -> None:
        handle, layout, self._shared_gradients = _share(network, graph, count)
        meta = {
            "model": asdict(network.config),
            "n_entities": graph.n_entities,
            "n_relations": graph.n_relations,
            "file": f"/proc/self/fd/{handle}",
            "layout": layout,
        }
        # -P: a module of the user's in the current folder must not hide one of the standard library.
        command = [sys.executable, "-P", "-m", "dpmpn.engine.workers"]
        package = str(Path(__file__).parents[2])
        search = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": search}
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(count):
                self.processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        env=environment,
                        pass_fds=[handle],
                        process_group=0,
                    )
                )
            for worker, process in enumerate(self.processes):
                send(_pipes(process)[0], meta | {"worker": worker})
            for process in self.processes:
                self._receive(process)
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
        with contextlib.suppress(BrokenPipeError):  # a dead worker is reported when its result is awaited
            send(_pipes(self.processes[worker])[0], meta, **arrays)

    def gradients(self, worker: int) -> Gradients:
        """Wait for the gradients of the part a worker was given; its next part overwrites them."""
        meta, arrays = self._receive(self.processes[worker])
        shared, rows = torch.from_numpy(self._shared_gradients[worker]), torch.from_numpy(arrays["rows"])
        return Gradients(meta["loss"], meta["reached"], shared, arrays["entities"], rows)

    def answer(self, worker: int) -> Answer:
        """Wait for the answer to the part a worker was given."""
        _, arrays = self._receive(self.processes[worker])
        unlisted = None
        if "of_entity" in arrays:
            unlisted = Unlisted(arrays["of_entity"], torch.from_numpy(arrays["of_kind"]))
        return Answer(arrays["offsets"], arrays["nodes"], torch.from_numpy(arrays["attention"]), unlisted)

    def _receive(self, process: subprocess.Popen[bytes]) -> tuple[dict, dict[str, np.ndarray]]:
        try:
            meta, arrays = receive(_pipes(process)[1])
        except Closed:
            code = process.wait()
            raise RunError(
                f"a worker process ended unexpectedly (exit code {code}); if memory ran out, lower "
                "memory_budget_mb or threads"
            ) from None
        if "error" in meta:
            raise RuntimeError(f"a worker process failed:\n{meta['error']}")
        return meta, arrays

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.kill()  # it owns nothing that could be lost
            to, back = _pipes(process)
            with contextlib.suppress(BrokenPipeError):
                to.close()
            back.close()
            process.wait()
        self.processes = []


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """What a process reads, and what it writes."""
    assert process.stdin is not None and process.stdout is not None  # both were asked for
    return process.stdin, process.stdout


def _share(network: AnyNetwork, graph: KnowledgeGraph, count: int) -> tuple[int, dict, list[np.ndarray]]:
    """Move the network's parameters into memory that can be mapped, beside a copy of the graph's arrays.

    Each worker has room for its gradients there: through a pipe, many would take as long as they took to compute.
    The memory is a file without a name: it goes when the last process that maps it ends, however that ends.
    """
    arrays = {name: p.detach().numpy() for name, p in network.named_parameters()}
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
            f"no memory for {size / 2**20:,.0f} MB that processes share: {error.strerror}; try --threads 1"
        ) from error
    # Rooms for gradients take memory when they are first written: those who only ask never do.
    dtype = network.entities.detach().numpy().dtype
    n_shared = sum(parameter.numel() for parameter in network.shared_parameters().values())
    for worker in range(count):
        layout[f"gradients.{worker}"] = [dtype.str, (n_shared,), size]
        size += -(-n_shared * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    os.ftruncate(handle, max(size, 1))
    views = _views(f"/proc/self/fd/{handle}", layout)
    for name, array in arrays.items():
        views[name][...] = array
    for name, parameter in network.named_parameters():
        parameter.data = torch.from_numpy(views[name])
    return handle, layout, [views[f"gradients.{worker}"] for worker in range(count)]


def _views(path: str, layout: dict) -> dict[str, np.ndarray]:
    whole = np.memmap(path, np.uint8, "r+")
    views = {}
    for name, (dtype, shape, start) in layout.items():
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        views[name] = np.asarray(whole[start : start + n_bytes]).view(dtype).reshape(shape)
    return views


def _attach(meta: dict) -> tuple[Computer, np.ndarray]:
    """The network and graph of the parent, in the memory they share, and this worker's room for gradients there."""
    views = _views(meta["file"], meta["layout"])
    network = build_network(1, meta["n_relations"], ModelConfig(**meta["model"]), 0)
    for name, parameter in network.named_parameters():
        parameter.data = torch.from_numpy(views[name])
    arrays = {name: views[f"graph.{name}"] for name in _GRAPH_ARRAYS}
    for array in arrays.values():
        array.flags.writeable = False  # as in every graph, so that kernels compile once
    names = Vocabulary.numbered(meta["n_entities"]), Vocabulary.numbered(meta["n_relations"])
    graph = KnowledgeGraph(**arrays, entities=names[0], relation_names=names[1])
    return computer_for(network, graph, reference=False), views[f"gradients.{meta['worker']}"]


def _compute(
    computer: Computer, room: np.ndarray, meta: dict, arrays: dict[str, np.ndarray]
) -> tuple[dict, dict[str, np.ndarray]]:
    edges = tuple(
        SampledEdges(*(arrays[f"{part}{step}"] for part in ("heads", "relations", "tails")))
        for step in range(meta["ignn_steps"])
    )
    batch = QueryBatch(arrays["heads"], arrays["relations"], arrays["keys"], arrays["removed"], edges)
    horizon = Horizon(**meta["horizon"])
    if "targets.offsets" not in arrays:
        answer = computer.answer(batch, horizon)
        sent = {"offsets": answer.offsets, "nodes": answer.nodes, "attention": answer.attention.numpy()}
        if answer.unlisted is not None:
            sent |= {"of_entity": answer.unlisted.of_entity, "of_kind": answer.unlisted.probability.numpy()}
        return {}, sent
    targets = Targets(*(arrays[f"targets.{name}"] for name in _TARGET_ARRAYS))
    result = computer.gradients(batch, targets, horizon, meta["n_targets"])
    room[:] = result.shared.numpy()
    sent = {"entities": result.entities, "rows": result.rows.numpy()}
    return {"loss": result.loss, "reached": result.reached}, sent


def main() -> None:
    """Serve one parent process until it closes the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # the parent's to handle; this process ends when its pipe closes
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not reach the pipe
    torch.set_num_threads(1)
    keep_freed_memory()
    try:
        meta, _ = receive(stdin)
        computer, room = _attach(meta)
        send(stdout, {})
        while True:
            meta, arrays = receive(stdin)
            try:
                reply, sent = _compute(computer, room, meta, arrays)
            except Exception:
                import traceback

                reply, sent = {"error": traceback.format_exc()}, {}
            send(stdout, reply, **sent)
    except (Closed, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
