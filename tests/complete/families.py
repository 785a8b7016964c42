"""Families in which a child's father is its mother's husband; some fathers are stated nowhere."""

from dataclasses import replace

import numpy as np
import polars as pl

import dpmpn

N, STATED, VALID, TEST = (
    60,
    34,
    48,
    54,
)  # families; fathers from STATED on are held out, from TEST on left out
SETTINGS = {
    **{"n_dims": 8, "n_steps_in_agnn": 3},
    **{"batch_size": 16, "threads": 1, "n_epochs": 6, "learning_rate": 0.01},
}
LEFT_OUT = {(f"child{i}", "father", f"father{i}") for i in range(TEST, N)}
HELD_OUT = {(f"child{i}", "father", f"father{i}") for i in range(STATED, TEST)}


def fathers(first: int, last: int) -> list[tuple[str, str, str]]:
    return [(f"child{i:02}", "father", f"father{i:02}") for i in range(first, last)]


def families(with_valid: bool = True, with_labels: bool = False) -> dpmpn.Dataset:
    train = [
        *((f"child{i:02}", "mother", f"mother{i:02}") for i in range(N)),
        *((f"mother{i:02}", "husband", f"father{i:02}") for i in range(N)),
        *(
            (f"father{i:02}", "brother", f"father{(i + 1) % N:02}") for i in range(N)
        ),  # so that others are reached
        *((f"mother{i:02}", "sister", f"mother{(i + 1) % N:02}") for i in range(N)),
        *fathers(0, STATED),
    ]
    valid = fathers(STATED, VALID) if with_valid else []
    dataset = dpmpn.dataset_from_tuples(train, valid, fathers(VALID, TEST), "families")
    return labelled(dataset) if with_labels else dataset


def labelled(dataset: dpmpn.Dataset) -> dpmpn.Dataset:
    """The dataset with a label and a type for each entity: child07 is "Child 7" and of type child."""
    names = pl.Series("id", dataset.graph.entities.names)
    numbers, types = names.str.tail(2).cast(pl.Int32).cast(pl.String), names.str.head(-2)
    frame = pl.DataFrame({"id": names, "name": types.str.to_titlecase() + " " + numbers, "type": types})
    labels = frame.with_columns(description=pl.lit(None, pl.String))
    graph = replace(dataset.graph, entities=dataset.graph.entities.labelled(labels))
    return replace(dataset, graph=graph)


def fact_tuples(frame: pl.DataFrame) -> list[tuple[str, str, str]]:
    return list(frame.select("head", "relation", "tail").iter_rows())


def stated(dataset: dpmpn.Dataset, *splits: str) -> set[tuple[str, str, str]]:
    names, relations = dataset.graph.entities, dataset.graph.relation_names
    triples = np.concatenate([dataset.split(split) for split in splits])
    return {(names.name(h), relations.name(r), names.name(t)) for h, r, t in triples.tolist()}
