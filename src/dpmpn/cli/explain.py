"""`dpmpn explain`: why a question has an answer, and why not another, in sentences, data and pictures."""

import csv
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmpn.ask.results import LEFT_OUT
from dpmpn.cli.changed_facts import Added, OtherGraph, Removed, RunName, changed, opened
from dpmpn.cli.output import STDOUT, JsonTarget, Output, print_data, write_output
from dpmpn.cli.settings import with_settings
from dpmpn.errors import ConfigError, DataError
from dpmpn.render.formats import FORMATS, checked_formats
from dpmpn.wording import listed, one_line, score_shown

if TYPE_CHECKING:
    from dpmpn.ask.results import Predictions
    from dpmpn.reasoner.reasoner import Reasoner
    from dpmpn.render.formats import Explanation, WhyNot

_PRINTED = [
    f"{format.name} ({format.help})" if format.help else format.name
    for format in FORMATS.values()
    if format.is_printed
]


_A_FACT = 'a line such as "Croatia, in_subregion, Southern Europe"'
Answer = Annotated[
    str | None, typer.Argument(metavar="ANSWER", help="the answer to explain; the first one if left out")
]
Others = Annotated[
    list[str] | None,
    typer.Option(
        "--why-not", metavar="ENTITY", help="explain where this one lost its attention; may be repeated"
    ),
]
Decisive = Annotated[
    bool,
    typer.Option(
        "--decisive",
        help="find the facts that decide, by asking again: a small set without which the answer loses its rank, and a "
        "small set with which alone it keeps it",
    ),
]
KeepFact = Annotated[
    bool,
    typer.Option(
        "--keep-fact",
        help="explain an answer that the graph states with that fact in the graph; else it is asked as if unknown",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without", metavar="FACT", help=f"ask again without this fact, {_A_FACT}; may be repeated"
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="FACT", help=f"ask again with this fact, {_A_FACT}; may be repeated"),
]
Inverse = Annotated[
    bool, typer.Option("--inverse", help="ask <?, RELATION, HEAD> instead of <HEAD, RELATION, ?>")
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="names for identifiers, as in `dpmpn import`"),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="write files to this folder, replacing those of an earlier explanation",
    ),
]
Formats = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="LIST",
        help=f"what to write, separated by commas: {listed(list(FORMATS), 'or')}; by default all of them with --out, "
        f"and text without. Without --out, one of these can be printed: {listed(_PRINTED)}",
    ),
]


@with_settings("asking", "run")
def command(
    run_dir: RunName,
    head: Annotated[str, typer.Argument(metavar="HEAD", help="the entity the question is about")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="the relation to ask about")],
    answer: Answer = None,
    why_not: Others = None,
    inverse: Inverse = False,
    on: OtherGraph = None,
    add: Added = None,
    remove: Removed = None,
    without: Without = None,
    with_: With = None,
    decisive: Decisive = False,
    keep_fact: KeepFact = False,
    labels: Labels = None,
    out: Folder = None,
    format: Formats = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Explain an answer: the facts that carried the model's attention to it, and how much came along each path.

    The explanation is read from the steps in which the model found the answer; nothing else is computed.

    For example: dpmpn explain runs/demo Serbia in_subregion --why-not "Eastern Europe" --out why

    Then open why/explanation.html, which plays the reasoning step by step.

    The facts that carried the answer are in why/key_facts.csv; see what the model says without them:

    dpmpn explain runs/demo Serbia in_subregion --remove why/key_facts.csv

    Or ask what decides, and what if a fact were not there:

    dpmpn explain runs/demo Serbia in_subregion --decisive

    dpmpn explain runs/demo Serbia in_subregion --without "Croatia, in_subregion, Southern Europe"

    With --on, the question is asked on another graph instead of the run's own.
    """
    formats = _formats(format, out, json)
    raw = json == STDOUT or (out is None and formats != ["text"])
    output = Output(STDOUT if raw else None)  # so that what is said does not get between the data
    reasoner = opened(output, run_dir, on, settings)
    before = reasoner if labels is None else reasoner.with_labels(labels)
    more, fewer = _facts("--with", with_), _facts("--without", without)
    reasoner = changed(output, before, [*(add or ()), *more], [*(remove or ()), *fewer])
    if reasoner is not before:
        _say_change(output, before, reasoner, (head, relation, inverse), answer)
    with output.busy("asking"):
        predictions = reasoner.predict(head, relation, top=1, inverse=inverse)
    for note in predictions.notes:
        if not note.startswith(LEFT_OUT):
            output.say(f"Note: {note}")
    for name in (answer, *(why_not or ())):
        if name is not None:
            reasoner.graph.entities.id(name)  # refused before anything is printed
    is_text = json is None and formats == ["text"]
    if is_text and (more or fewer) and not predictions:
        return  # what became of the answer is said, and there is no other to explain
    explanation, others = _explained(output, predictions, answer, why_not or [], is_text, keep_fact)
    if decisive:
        with output.busy("asking again"):
            explanation = reasoner.with_decisive(explanation)
    against = [predictions.why_not(name) for name in dict.fromkeys(others)]
    if json == STDOUT:
        print_data(_main_text(explanation, against, "json"))
    elif json is not None:
        write_output(Path(json), _main_text(explanation, against, "json"))
    if out is not None:
        _save(output, explanation, against, out, formats, chosen=format is not None)
    elif formats == ["text"] and json != STDOUT:
        output.say(_main_text(explanation, against, "text").rstrip("\n"))
    elif json != STDOUT:
        print_data(_main_text(explanation, against, formats[0]))


def _facts(option: str, lines: list[str] | None) -> list[tuple[str, ...]]:
    """Facts that are given as lines: head, relation and tail, in quotes where a name has a comma."""
    facts = []
    for line in lines or ():
        fact = next(csv.reader([line], skipinitialspace=True), [])
        if len(fact) != 3:
            raise ConfigError(
                f"{option} {shlex.quote(line)}: give head, relation and tail with commas between them, and a name that "
                "has a comma itself in double quotes"
            )
        facts.append(tuple(fact))
    return facts


def _say_change(
    output: Output, before: "Reasoner", after: "Reasoner", question: tuple[str, str, bool], answer: str | None
) -> None:
    """What became of the answer, or of the one that was the first, by the change."""
    with suppress(DataError):  # where nobody knew a name, or nothing answered, there is nothing to compare
        ids = before.question_ids(*question)
        entity = None if answer is None else before.graph.entities.id(answer)
        output.say(before.compared(after, ids, entity).text)


def _formats(given: str | None, out: Path | None, json: str | None) -> list[str]:
    """The formats to write, or the one to print."""
    if given is None:
        return ["text"] if out is None else list(FORMATS)
    formats = checked_formats(given)
    if out is not None:
        return formats
    for name in formats:
        if not FORMATS[name].is_printed:
            raise ConfigError(f"--format {name} is written to a file: say where with --out DIR")
    if len(formats) > 1:
        raise ConfigError(f"--format {given}: one format can be printed; give --out DIR to write several")
    if json == STDOUT and formats[0] not in ("text", "json"):
        raise ConfigError(
            f"--json - and --format {formats[0]} cannot both be printed; give --out DIR for one"
        )
    return formats


def _explained(
    output: Output,
    predictions: "Predictions",
    answer: str | None,
    why_not: list[str],
    is_text: bool,
    keep_fact: bool,
) -> "tuple[Explanation, list[str]]":
    """What to explain and what to explain away: an answer that got no attention is one of these.

    That is said to people; a program that asks for one answer is not given the record of another.
    """
    if answer is None or not predictions or predictions.is_reached(answer):  # no predictions: that is refused
        return predictions.explain(answer, keep_fact), why_not
    if not is_text:
        raise DataError(
            f"no attention reached {answer}, so nothing carried it there; "
            f'leave it out as ANSWER and ask --why-not "{answer}" to read where it was lost'
        )
    first = one_line(predictions[0].label)
    output.say(
        f"No attention reached {answer}: this explains the first answer, {first}, and why not {answer}."
    )
    output.say()
    return predictions.explain(keep_fact=keep_fact), [answer, *why_not]


def _main_text(explanation: "Explanation", why_not: "Sequence[WhyNot]", name: str) -> str:
    """What is printed of a format: its main file."""
    return FORMATS[name].content(explanation, why_not).decode("utf-8")


def _save(
    output: Output,
    explanation: "Explanation",
    why_not: "Sequence[WhyNot]",
    out: Path,
    formats: list[str],
    chosen: bool,
) -> None:
    try:
        paths = explanation.save(out, formats, why_not)
    except ConfigError as missing:
        rest = [name for name in formats if not FORMATS[name].needs_extra]
        if chosen or rest == formats:
            raise
        output.say(f"without {listed([name for name in formats if name not in rest])}: {missing}")
        paths = explanation.save(out, rest, why_not)
    answer = explanation.answer
    output.say(
        f"{one_line(str(explanation.question))} {one_line(answer.label)}, number {answer.rank:,}, "
        f"score {score_shown(answer.score)}"
    )
    output.say(f"written to {out}: {', '.join(path.name for path in paths)}")
