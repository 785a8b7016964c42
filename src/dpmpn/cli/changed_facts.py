"""Who is asked, and on what: a run or the pre-trained model, another graph (--on), facts more or fewer."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmpn.ask.expectations import FEW_FACTS
from dpmpn.cli.output import Output
from dpmpn.data.importer import is_dataset, load_facts
from dpmpn.data.registry import find_dataset
from dpmpn.errors import ConfigError, DataError, UnknownName
from dpmpn.models.any_graph.settings import AnyGraphSettings
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.wording import counted, listed, plural

if TYPE_CHECKING:
    from dpmpn.data.changed_graph import Changes

ANY_GRAPH = AnyGraphSettings.name
"""The model that comes with the package, where the folder of a run is named; `./any-graph` is a folder."""
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN_DIR",
        help=f"folder of a trained run; demo, the one that comes with the package; or {ANY_GRAPH}, the model that "
        "needs no training, with --on FACTS",
    ),
]
OtherGraph = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="FACTS",
        help="ask about another graph: a file of facts, a folder with a file train.*, a name of `dpmpn datasets` "
        f"or another run. {ANY_GRAPH} takes any graph; models trained with --model strong take one with the "
        "same relations and any entities",
    ),
]
Added = Annotated[
    list[Path] | None,
    typer.Option("--add", metavar="FILE", help="add these facts to the graph; may be repeated"),
]
Removed = Annotated[
    list[Path] | None,
    typer.Option("--remove", metavar="FILE", help="remove these facts from the graph; may be repeated"),
]
_SHOWN_NEW = 3  # names of new entities, and of relations
_IMPORT_OPTION = "--(columns|wide|no-wide|cell-separator|skip-bad|format|separator|no-header|header|query)"


def loaded(run: str, on: str | None, settings: Mapping[str, str]) -> Reasoner:
    """The reasoner of a run folder, or a pre-trained one, for which a graph must be named."""
    from dpmpn.train.pretrained import is_pretrained

    folder = Path(run)
    if run != ANY_GRAPH and not is_pretrained(folder):
        _refuse_facts(run)
        return Reasoner.load(run, **settings)
    if on is None:
        raise ConfigError(
            f"{run} has no graph of its own; name one with --on FACTS: a file such as facts.csv, a "
            f"folder with a file train.*, or a name listed by `dpmpn datasets`"
        )
    return Reasoner.pretrained(None if run == ANY_GRAPH else folder, **settings)


def _refuse_facts(run: str) -> None:
    """Say what to do where facts are named in the place of a run."""
    from dpmpn.train.run_folder import CONFIG, run_path

    folder = run_path(run)
    if folder.is_dir():
        is_facts = is_dataset(folder) and not os.path.lexists(folder / CONFIG)  # a broken run is still a run
    else:
        is_facts = folder.is_file() or find_dataset(run) is not None
    if not is_facts:
        return
    what = "a file, not the folder of a run" if folder.is_file() else "a dataset, not a run"
    facts = shlex.quote(run)
    raise ConfigError(
        f"{run} is {what}; to ask without training, name {ANY_GRAPH} --on {facts} in its place; to train on it, run "
        f"`dpmpn train {facts}`"
    )


def opened(output: Output, run: str, on: str | None, settings: Mapping[str, str]) -> Reasoner:
    """The same on another graph, where one is named."""
    with output.busy("loading"):  # a second or two, ten where the libraries come from a slow disk
        reasoner = loaded(run, on, settings)
    if on is None:
        return reasoner
    other = reasoner.on(load_facts(on, output.say))
    facts = counted(len(other.dataset.train), "fact")
    entities = counted(other.graph.n_entities, "entity", "entities")
    output.say(f"asking about {other.dataset.name}: {entities}, {facts}")
    return other


def say_expectations(output: Output, reasoner: Reasoner) -> None:
    """Say what cannot be expected of a model on a graph it has never seen, before many questions are asked."""
    if reasoner.expectations is None:
        return
    for note in reasoner.expectations.of_graph:
        output.say(f"Note: {note}")
    if few := reasoner.expectations.few:
        names = listed(
            [*few[:_SHOWN_NEW], *([f"{len(few) - _SHOWN_NEW:,} more"] if few[_SHOWN_NEW:] else [])]
        )
        have = counted(len(few), "relation has", "relations have")
        about = plural(len(few), "it", "them")
        output.say(
            f"Note: {have} fewer than {FEW_FACTS} facts, so answers about {about} are guesses: {names}"
        )


def changed(
    output: Output,
    reasoner: Reasoner,
    add: Sequence[Path | tuple[str, ...]] | None,
    remove: Sequence[Path | tuple[str, ...]] | None,
) -> Reasoner:
    """The reasoner on a graph with some facts more and some fewer, of files or given one by one."""
    if not add and not remove:
        return reasoner
    try:
        other = reasoner.with_facts(add=add or (), remove=remove or ())
    except UnknownName:
        raise
    except DataError as error:
        raise DataError(_without_options(str(error))) from error
    if other.changes is not None:
        held_out = _n_held_out(reasoner, remove or ()) if other.changes.absent else 0
        output.say(", ".join(_notes(other.changes, bool(add), bool(remove), held_out)))
    return other


def _notes(changes: "Changes", is_adding: bool, is_removing: bool, held_out: int) -> list[str]:
    """What became of the facts to add and to remove; `held_out` of the absent ones are."""
    notes = [f"{counted(changes.added, 'fact')} added"] if is_adding else []
    if changes.already_there:
        notes.append(f"{counted(changes.already_there, 'was', 'were')} there already")
    if is_removing:
        removed = f"{changes.removed:,}" if is_adding else counted(changes.removed, "fact")
        notes.append(f"{removed} removed")
    if changes.absent:
        held = f" ({counted(held_out, 'is', 'are')} held out, so not in the graph)" if held_out else ""
        notes.append(f"{counted(changes.absent, 'was', 'were')} not there to be removed{held}")
    if new := changes.new_entities:
        more = f" and {len(new) - _SHOWN_NEW:,} more" if len(new) > _SHOWN_NEW else ""
        notes.append(
            f"{counted(len(new), 'new entity', 'new entities')}: {', '.join(new[:_SHOWN_NEW])}{more}"
        )
    if changes.new_relations:
        names = listed(changes.new_relations[:_SHOWN_NEW])
        notes.append(f"{counted(len(changes.new_relations), 'new relation')}: {names}")
    return notes


def _n_held_out(reasoner: Reasoner, removed: Sequence[Path | tuple[str, ...]]) -> int:
    """How many of the facts in these files only validation or test facts state: the graph cannot lose those."""
    import numpy as np

    from dpmpn.data.sources.base import COLUMNS
    from dpmpn.data.sources.formats import facts_of

    facts = facts_of(removed).select(COLUMNS)
    dataset, graph = reasoner.dataset, reasoner.graph
    entity, relation = graph.entities.find, graph.relation_names.find
    asked = {(entity(head), relation(name), entity(tail)) for head, name, tail in facts.iter_rows()}
    held = graph.either_way(np.concatenate([dataset.valid, dataset.test]))
    held = held[graph.find_edges(*held.T) < 0]
    return len(asked & set(map(tuple, held.tolist())))


def _without_options(message: str) -> str:
    """A reader's message without the options of `dpmpn import` it advises, which this command does not have."""
    kept = re.sub(rf", or [^;]*{_IMPORT_OPTION}.*$", "", message, flags=re.DOTALL)
    if not re.search(_IMPORT_OPTION, kept):
        return kept
    kept = re.sub(rf"; [^;]*{_IMPORT_OPTION}.*$", "", kept, flags=re.DOTALL)
    return f"{kept}; write the columns head, relation and tail, named in the first line"
