"""`dpmpn bench`: measures how fast this machine trains and asks."""

from typing import Annotated, Any

import typer

from dpmpn.cli.output import JsonTarget, Output, table
from dpmpn.cli.settings import chosen_settings, with_settings
from dpmpn.errors import ConfigError


@with_settings()
def command(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET_OR_FOLDER", help="a name of `dpmpn datasets`, or a folder")
    ],
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="NUMBER", help="how long to measure each rate")
    ] = 20.0,
    reference: Annotated[
        bool, typer.Option("--reference", help="measure the plain reference implementation, too")
    ] = False,
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="NAME|FILE", help="settings to start from")
    ] = None,
    json: JsonTarget = None,
    *,
    settings: dict[str, str],
) -> None:
    """Measure training and asking with a dataset's settings: queries a second, latency and memory."""
    output = Output(json)
    if seconds <= 0:
        raise ConfigError(f"'--seconds' must be above 0, not {seconds:g}")
    data, config, _ = chosen_settings(dataset, preset, settings)

    from dpmpn.lab.bench import bench

    output.say(f"measuring {data.name}, about {seconds:g} s each")
    report = bench(data, config, seconds, reference)
    output.result(report, lambda: _show_measures(output, report))


def _show_measures(output: Output, report: dict[str, Any]) -> None:
    shown = table("measure", "value", right=("value",))
    for key, value in report.items():
        if not isinstance(value, dict | list):
            shown.add_row(key, f"{value:,.1f}" if isinstance(value, float) else str(value))
    output.show(shown)
