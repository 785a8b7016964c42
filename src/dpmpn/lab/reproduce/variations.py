"""The settings that Figures 4 and 6 vary: one at a time, the others as they stand in the preset."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from dpmpn.config import AskingConfig, Config, to_dict, with_overrides
from dpmpn.data.dataset import Dataset
from dpmpn.lab.reproduce.exhibit import Request, Result
from dpmpn.lab.reproduce.settings import config_for
from dpmpn.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STANDARD = "standard"


@dataclass(frozen=True)
class Varied:
    """A setting, and the values it is given."""

    key: str
    short: str  # in names of runs
    values: tuple[int, ...]
    quick_values: tuple[int, ...]


@dataclass(frozen=True)
class Variation:
    """The standard settings with one of them changed, or with none."""

    name: str
    varied: str | None  # None in the standard settings, which are a point of every panel
    changes: dict[str, Any]


# The paper prints no values beside its charts; these are ours, around the standard ones.
VARIED = (
    Varied("max_sampling_per_node", "sampling", (20, 50, 100, 200, 400), (5, 20)),
    Varied("max_attending_to_per_step", "attending-to", (20, 50, 100, 200, 400), (10, 40)),
    Varied("max_attending_from_per_step", "attending-from", (5, 10, 20, 40), (3, 10)),
    Varied("n_steps_in_agnn", "steps", (2, 4, 6, 8, 10), (2, 4)),
)


def standard_config(request: Request, dataset: Dataset, seed: int) -> Config:
    """The settings of the preset, asked with the horizon they were trained with: both vary together."""
    as_trained: dict[str, Any] = {option.name: None for option in fields(AskingConfig)}
    return config_for(request, dataset, seed, **as_trained)


def variations(request: Request, standard: Config) -> list[Variation]:
    """The standard settings, and every other value of every setting."""
    made = [Variation(STANDARD, None, {})]
    for varied in VARIED:
        for value in varied.quick_values if request.quick else varied.values:
            if value != setting(standard, varied.key):
                made.append(Variation(f"{varied.short}-{value}", varied.key, {varied.key: value}))
    return made


def described(variation: Variation, standard: Config, keys: Iterable[str]) -> dict[str, Any]:
    """Which setting a piece varies, and the values of those that are varied somewhere."""
    config = with_overrides(standard, variation.changes)
    return {"varied": variation.varied, "settings": {key: setting(config, key) for key in keys}}


def setting(config: Config, key: str) -> int:
    """The value of a setting by its key alone."""
    return next(section[key] for section in to_dict(config).values() if key in section)


def by_value(results: Sequence[Result], key: str) -> dict[int, list[Result]]:
    """The results where a setting was varied, with the standard ones among them, by its ascending values."""
    found: dict[int, list[Result]] = {}
    for result in results:
        if result["varied"] in (key, None):
            found.setdefault(result["settings"][key], []).append(result)
    return dict(sorted(found.items()))


def values_told() -> str:
    """Whose choice the values are."""
    return (
        "One setting is varied at a time and the others stay as they are. "
        "The paper's text names no values for its charts, so these are ours."
    )


def draw_setting(axes: "Axes", key: str, values: Sequence[int], standard: int | None) -> None:
    """Label an axis with a setting's name and its values, and mark the standard one."""
    from dpmpn.lab.figures import COLOURS

    axes.set_xlabel(key)
    if key != "n_steps_in_agnn":  # the others are doubled from value to value
        axes.set_xscale("log")
    axes.set_xticks(list(values), [str(value) for value in values])
    axes.minorticks_off()
    if standard is not None:
        axes.axvline(
            standard,
            color=COLOURS[-1],
            linewidth=1,
            linestyle=(0, (4, 3)),
            zorder=0,
            label="standard setting",
        )


def standard_told(results: Iterable[Result]) -> str:
    """The standard settings in words."""
    standard = next(result for result in results if result["varied"] is None)["settings"]
    return f"The standard settings are {listed([f'`{key}` = {value}' for key, value in standard.items()])}."
