"""What comes of a pre-training: the average of the weights, what they were made of, and a card for people to read."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpmpn.config import Config
from dpmpn.engine.model import Model
from dpmpn.files import write_text
from dpmpn.pretrain.folder import PretrainingState
from dpmpn.pretrain.graphs import NamedGraph
from dpmpn.pretrain.settings import PretrainingSettings
from dpmpn.pretrain.validation import HIDDEN
from dpmpn.provenance import machine, versions
from dpmpn.train.pretrained import Pretrained, write_pretrained

CARD = "MODEL_CARD.md"


def write_result(
    folder: Path,
    model: Model,
    graphs: Sequence[NamedGraph],
    config: Config,
    settings: PretrainingSettings,
    state: PretrainingState,
    start: Pretrained | None,
) -> None:
    """Write the weights that a model has, all that is known of their making, and the card, in place of older ones."""
    made = {
        "questions": state.position,
        "seconds": state.elapsed_seconds,
        "cpu_seconds": state.cpu_seconds,
        "seed": config.run.seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "graphs": [graph.described() for graph in graphs],
        "settings": asdict(settings),
        "validation": state.validation,
        "best_validation": state.best,
        "versions": versions(),
        "machine": machine(),
    }
    if start is not None:
        made["start"] = {"name": start.name, "sha256": start.sha256, "card": start.card}
    write_pretrained(folder, model, config.replace(relation_network="kept", threads=0), made)
    write_text(folder / CARD, model_card(made))


def model_card(made: dict[str, Any]) -> str:
    """What a person should know of the weights, in Markdown."""
    graphs, validation = made["graphs"], made["validation"]
    total = sum(graph["facts"] for graph in graphs)
    lines = [
        "# Model card",
        "",
        f"Weights of the model for any graph: {made['parameters']:,} parameters, none of which belongs to an "
        "entity or a relation. They answer questions on any knowledge graph, without training.",
        "",
        "## How they were made",
        "",
        f"By `dpmpn pretrain` on {len(graphs)} graphs with {total:,} facts: {made['questions']:,} questions in "
        f"{made['cpu_seconds'] / 3600:.2f} CPU hours ({made['machine']['processor']}), seed {made['seed']}. Facts that "
        "were asked for were hidden from the graph. `weights.json` has all settings, and checksums of the files.",
        "",
        "| Graph | Facts | Entities | Relations |",
        "|---|--:|--:|--:|",
    ]
    lines += [
        f"| {_cell(graph['name'])} | {graph['facts']:,} | {graph['entities']:,} | {graph['relations']:,} |"
        for graph in graphs
    ]
    if "start" in made:
        lines += ["", _begun_with(made["start"])]
    lines += ["", "## How good they are", ""]
    if validation and validation["graphs"]:
        lines += [
            f"On graphs that were not trained on: one fact of {HIDDEN} is hidden, some of those are asked for in both "
            "directions, and ranks are filtered and realistic (ties share the mean of their places).",
            "",
            "| Graph | Questions | MRR | Hits@1 | Hits@10 | Reached |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        rows = [*validation["graphs"], {"name": "mean", "queries": None, **validation["mean"]}]
        lines += [
            f"| {_cell(row['name'])} | {row['queries'] or ''} | {row['mrr']:.3f} | {row['hits_at_1']:.3f} "
            f"| {row['hits_at_10']:.3f} | {row['coverage']:.3f} |"
            for row in rows
        ]
        best = made["best_validation"]
        lines += [
            "",
            f"The best mean MRR of any validation was {best['mrr']:.3f}, after {best['position']:,} questions; the "
            "last weights are kept, since the best of many validations is partly luck.",
        ]
    else:
        lines.append("No graph was given to validate on.")
    lines += [
        "",
        "## Limits",
        "",
        "Answers follow from how relations occur together in the graph that is asked, so a relation with a handful of "
        "facts, or a graph with one relation, says little. Names and texts are not read. The licences of the graphs "
        "above hold for what is made of them: check that they allow your use.",
        "",
    ]
    return "\n".join(lines)


def _begun_with(start: dict[str, Any]) -> str:
    """What was made of the weights before, in a sentence."""
    card = start["card"]
    names = ", ".join(_cell(str(graph["name"])) for graph in card.get("graphs", []))
    sentence = (
        f"They began with the weights of {_cell(start['name'])} (SHA-256 `{start['sha256'][:12]}`), which had seen "
        f"{card.get('questions', 0):,} questions on {names}"
    )
    return f"{sentence}. {_begun_with(card['start'])}" if "start" in card else f"{sentence}."


def _cell(name: str) -> str:
    return name.replace("|", "\\|").replace("\n", " ")
