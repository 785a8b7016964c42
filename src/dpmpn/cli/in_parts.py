"""Commands whose work is done in parts: in one process, in shards that any scheduler starts, or on a Ray cluster."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import polars as pl
import typer
from typer.core import TyperCommand

from dpmpn.bulk.parts import Division, Parts, check_place, check_shards
from dpmpn.bulk.shards import Shard
from dpmpn.bulk.work import Carry, InMemory, Kept, Work, here, make_parts
from dpmpn.cli.output import Output, as_json
from dpmpn.errors import ConfigError, RunError
from dpmpn.files import write_text
from dpmpn.wording import counted

_Work = TypeVar("_Work", bound=Work)
_MERGE = "merge"  # in the place of k/n: what `dpmpn merge` gives the command of the shards
_ON_RAY, _ANY_CLUSTER = "--on-ray", "auto"
_ADDRESS = re.compile(r"auto|local|ray://\S+|[^\s/]+:\d+")
_GIVEN = "dpmpn.arguments"
_COMMANDS = ("predict", "complete", "evaluate", "explain-eval")
_TIMES = ("seconds", "cpu_seconds", "queries_per_s")  # of a report: what differs from run to run


class BulkCommand(TyperCommand):
    """A command that knows what it was given, so that others can be told to give the same, and --on-ray [ADDRESS]."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; the address of --on-ray may be left out."""
        ctx.meta[_GIVEN] = [str(ctx.info_name), *without_options(args, ("--shard",))]
        return super().parse_args(ctx, list(_with_address(args)))


def _with_address(args: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(args):
        yield word
        if word == _ON_RAY and not (args[at + 1 :] and _ADDRESS.fullmatch(args[at + 1])):
            yield _ANY_CLUSTER


def without_options(args: Sequence[str], names: Sequence[str]) -> list[str]:
    """The arguments without some options and their values."""
    kept, skip = [], False
    for word in args:
        if not skip and word not in names and not word.startswith(tuple(f"{name}=" for name in names)):
            kept.append(word)
        skip = not skip and word in names
    return kept


ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="K/N",
        help="do the K-th of N shares alone, with --out; run all of them in any order, on any machines that see the "
        "same files, then `dpmpn merge OUT`",
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--on-ray",
        metavar="[ADDRESS]",
        help="do the work on a Ray cluster, with --out; without an address on the one this machine belongs to, or a "
        "new one of its own. Needs the extra 'ray'",
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="write the report, without times, to a .json file; an interrupted run continues from there",
    ),
]


@dataclass(frozen=True)
class Sharing:
    """How the parts of some work are made: by whom, and which of them."""

    command: tuple[str, ...]  # what was given, without the shard
    settings: dict[str, str]  # on a cluster, each worker has one CPU unless more are asked for
    shard: Shard | None = None
    is_merging: bool = False  # the parts are there, and nothing is asked again
    address: str | None = None  # of a Ray cluster

    @classmethod
    def of(
        cls,
        context: typer.Context,
        settings: dict[str, str],
        shard: str | None,
        on_ray: str | None,
        out: Path | None,
    ) -> "Sharing":
        """What was chosen; what does not go together is refused."""
        if shard is not None and on_ray is not None:
            raise ConfigError("--shard and --on-ray both share the work out; leave out one of them")
        for option, given in (("--shard", shard), (_ON_RAY, on_ray)):
            if given is not None and out is None:
                raise ConfigError(
                    f"{option} needs --out FILE, beside which the parts are kept until all are done"
                )
        command = tuple(context.meta.get(_GIVEN, ()))
        if shard == _MERGE:
            return cls(command, settings, is_merging=True)
        if on_ray is not None:
            return cls(command, {"threads": "1", **settings}, address=on_ray)
        return cls(command, settings, None if shard is None else Shard.read(shard))


def merging(division: Division, json: str | None) -> list[str]:
    """The arguments with which the command of some shards merges them.

    The folder of the shards may come from elsewhere: what it names writes nothing but the result.
    """
    command = list(division.command)
    if not command or command[0] not in _COMMANDS or without_options(command, ("--json", _ON_RAY)) != command:
        raise RunError(f"'{' '.join(command):.80}' is no command of shards; run one of them again")
    return [*command, "--shard", _MERGE, *([] if json is None else ["--json", json])]


def check_report(out: Path) -> None:
    """Refuse early a report that could not be written, or is there already."""
    if out.suffix.lower() != ".json":
        raise ConfigError(f"{out}: a report is written as JSON; end its name in .json")
    check_place(out)


def do_in_parts(
    output: Output,
    make: Callable[[Output], _Work],
    out: Path | None,
    sharing: Sharing,
    what: str,
    finish: Callable[[_Work, Kept, int], None],
) -> None:
    """Make the parts of some work; if these are all, let `finish` make the result of them.

    `make` opens the model and the graph, with the output to say things to: a function of plain values, which another
    machine can call, too. Without `out` parts are kept in memory; `finish` is told how many questions an earlier run
    asked.
    """
    if sharing.shard is not None and output.json_target is not None:
        raise ConfigError("--json goes with the whole result, not with --shard: give it to `dpmpn merge`")
    carry = here if sharing.address is None else _on_ray(output, make, sharing, sharing.address)
    with (
        closing(make(output)) as work,
        InMemory() if out is None else Parts(out, work.request, sharing.shard) as kept,
    ):
        if isinstance(kept, Parts):
            _check_sharing(kept, sharing, range(len(work.sizes)))
        with output.meter(what) as meter:
            before = make_parts(work, kept, meter.show_speed, shard=sharing.shard, carry=carry)
        if out is None or sharing.shard is None:
            finish(work, kept, before)
        else:
            _say_done(output, work, sharing.shard, before, out)


def _check_sharing(parts: Parts, sharing: Sharing, every: range) -> None:
    """Say how the work is divided, before a shard; and before merging, which shards are to be run again."""
    if sharing.shard is not None:
        parts.divide(len(every), sharing.command)
    elif sharing.is_merging and (missing := parts.missing(every)):
        check_shards(parts.out, set(every).difference(missing))
        raise RunError(f"{counted(len(missing), 'part')} of {parts.out} cannot be read; run the shards again")


def do_report(
    output: Output,
    make: Callable[[Output], _Work],
    out: Path | None,
    sharing: Sharing,
    what: str,
    report: Callable[[_Work, Iterator[pl.DataFrame]], dict[str, Any]],
    show: Callable[[_Work, dict[str, Any]], None],
) -> None:
    """The same for work whose result is a report; the file has no times, so that it is the same however it was made."""

    def finish(work: _Work, kept: Kept, _: int) -> None:
        made = report(work, kept.read(range(len(work.sizes))))
        lasting = {key: value for key, value in made.items() if key not in _TIMES}
        kept.finish(lambda path: write_text(path, as_json(lasting)))
        output.result(made, lambda: show(work, made))
        if out is not None:
            output.say(f"Report in {out}")

    if out is not None:
        check_report(out)
    do_in_parts(output, make, out, sharing, what, finish)


def _say_done(output: Output, work: Work, shard: Shard, before: int, out: Path) -> None:
    own = shard.parts(len(work.sizes))
    if not own:
        output.say(f"Shard {shard} has nothing to do: there are {counted(len(work.sizes), 'part')}.")
    else:
        asked = counted(sum(work.sizes[index] for index in own), "question")
        earlier = f", {before:,} of them by an earlier run" if before else ""
        output.say(f"Shard {shard} is done: {asked} in {counted(len(own), 'part')}{earlier}.")
    output.say(f"When all {shard.of} are done: dpmpn merge {out}")


def _on_ray(output: Output, make: Callable[[Output], Work], sharing: Sharing, address: str) -> Carry:
    from dpmpn.bulk.on_ray import carried

    threads = sharing.settings["threads"]
    cpus = (
        max(1, int(threads)) if threads.isdecimal() else 1
    )  # what is no number is refused with other settings
    return carried(partial(_made_there, make), address, cpus, output.say)


def _made_there(make: Callable[[Output], _Work]) -> _Work:
    """The work as a worker of a cluster makes it, where nobody reads what is said."""
    return make(Output(None))
