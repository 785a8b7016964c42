"""What is done in processes that are killed on the way: make a run, save both kinds of weights of a run."""

import torch

from dpmpn.config import Config
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.train.checkpoint import load_checkpoint, loop_state, save_best, save_checkpoint
from dpmpn.train.optimiser import Adam
from dpmpn.train.run_folder import RunFolder, append_line


def make_run(path: str) -> None:
    RunFolder.create(path, dataset_from_tuples([("a", "likes", "b")], name="pair"), Config())


def save_both(path: str) -> None:
    run = RunFolder.open(path)
    network = run.model("last")
    optimiser = Adam(network, run.config.training)
    state = load_checkpoint(run.path, network, optimiser, loop_state)
    with torch.no_grad():
        network.entities += 1
    append_line(run.metrics, {"kind": "test"})
    save_best(run.path, network, state.position, state.best)
    save_checkpoint(run.path, network, optimiser, state)
