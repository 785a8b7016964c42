"""`dpmpn merge`: puts the shards of a bulk command together, or says which of them are missing."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmpn.bulk.parts import check_shards
from dpmpn.cli.in_parts import merging
from dpmpn.cli.output import JsonTarget, Output
from dpmpn.errors import RunError


def command(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="the file that the shards were given as --out")],
    json: JsonTarget = None,
) -> None:
    """Put the results of all shards together: the same bytes as one run would have written.

    `complete`, `predict --queries`, `evaluate` and `explain-eval` do the K-th of N shares of their work with
    --shard K/N. Shares can be run in any order, at any time, on any number of machines that see the same files. One
    that was killed goes on when it is run again; one that is done is not done again.

    An array of jobs on Slurm:

    sbatch --array=1-8 --wrap 'dpmpn predict RUN --queries q.csv --out a.csv --threads 1 --shard $SLURM_ARRAY_TASK_ID/8'

    GNU parallel, here and on two hosts that share this folder:

    parallel -S :,host1,host2 --wd . dpmpn predict RUN --queries q.csv --out a.csv --threads 1 --shard {}/8 ::: {1..8}

    Then, in the same folder: dpmpn merge a.csv

    Machines that share no files: copy the folders a.csv.parts of all of them into one, then merge.
    """
    Output(json)  # which sees at once whether anything can be said
    division = check_shards(out)
    if Path(division.out).resolve() != out.resolve():
        again = shlex.join(["dpmpn", "merge", division.out])
        raise RunError(
            f"the shards of {out} were run as --out {division.out} in {division.folder}; merge there: "
            f"cd {shlex.quote(division.folder)} && {again}"
        )
    dpmpn: Any = context.find_root().command
    dpmpn.main(merging(division, json), prog_name="dpmpn", standalone_mode=False)
