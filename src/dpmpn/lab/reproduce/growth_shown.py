"""What was measured of the growth of subgraphs, in tables and sentences."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

from dpmpn.lab.figures import table
from dpmpn.lab.reproduce.exhibit import Exhibited, Request, Result
from dpmpn.lab.reproduce.growth_plot import SETTINGS, Grown, plot
from dpmpn.lab.reproduce.settings import LIMITS
from dpmpn.wording import counted, listed, percentage

_COLUMNS = (
    "part", "seed", "setting", "strategy", "d", "step", "bound", "probability", "within",
    "mean", "p95", "max", "coverage",
)  # fmt: skip
_TABLE_STEPS = (1, 2, 3)  # later bounds are above the size of the graph for all but the smallest d
_ROUNDING = 1e-9


def shown(request: Request, results: dict[str, Result]) -> Exhibited:
    """Rows, text and plots from the results of all pieces."""
    expansion = results["expansion"]
    grown = by_strategy(results)
    text = "\n".join(
        [
            _strategy_table(expansion, grown),
            _strategies_told(request, results, grown),
            _expansion_table(expansion),
            _expansion_told(expansion),
            _increment_table(grown["preset"]),
            _increments_told(grown),
        ]
    )
    rows = [*_expansion_rows(expansion), *_strategy_rows(results)]
    return Exhibited(rows, text, {"growth": plot(expansion, grown)})


def by_strategy(results: dict[str, Result]) -> Grown:
    """The subgraphs of all seeds, by setting and strategy."""
    found: Grown = {}
    for result in results.values():
        for grown in result.get("grown", []):
            of_setting = found.setdefault(grown["setting"], {})
            of_setting.setdefault(grown["horizon"]["strategy"], []).append(grown)
    return found


def broken(cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases where less kept within a bound than its probability promises."""
    return [case for case in cases if case["within"] < case["probability"] - _ROUNDING]


def _row(**values: Any) -> dict[str, Any]:
    return {column: values.get(column) for column in _COLUMNS}


def _expansion_rows(expansion: Result) -> list[dict[str, Any]]:
    rows = _size_rows(expansion["sizes"], part="full expansion")
    rows[-1]["coverage"] = expansion["coverage"]
    for bound in expansion["bounds"]:
        rows += [_row(part="proposition", d=bound["d"], **step) for step in bound["steps"]]
    return rows


def _strategy_rows(results: dict[str, Result]) -> list[dict[str, Any]]:
    rows = []
    for result in results.values():
        for grown in result.get("grown", []):
            shared = {
                "seed": result["seed"],
                "setting": grown["setting"],
                "strategy": grown["horizon"]["strategy"],
            }
            sizes = _size_rows(grown["sizes"], part="subgraphs", **shared)
            sizes[-1] |= {"bound": grown["bound"], "coverage": grown["coverage"]}
            rows += sizes
            rows += [_row(part="nodes added by a step", **shared, **case) for case in grown["by_degree"]]
    return rows


def _size_rows(sizes: dict[str, list[float]], **shared: Any) -> list[dict[str, Any]]:
    columns = zip(*(sizes[name] for name in ("mean", "p95", "max")), strict=True)
    return [
        _row(**shared, step=step, mean=average, p95=p95, max=largest)
        for step, (average, p95, largest) in enumerate(columns)
    ]


def _strategy_table(expansion: Result, grown: Grown) -> str:
    sizes = expansion["sizes"]
    n_steps = len(sizes["mean"]) - 1
    columns = [
        "strategy", *LIMITS.values(), f"nodes after {n_steps} steps: mean", "95 % have at most", "largest", "bound",
        "most added in a step", "bound of it", "answer in it, percent",
    ]  # fmt: skip
    last = [sizes[name][-1] for name in ("mean", "p95", "max")]
    rows = [["full expansion", "-", "-", "-", *(f"{size:,.0f}" for size in last), "-", "-", "-"]]
    rows[0].append(percentage(expansion["coverage"]))
    for setting in grown.values():
        rows += [_strategy_cells(strategy, found) for strategy, found in setting.items()]
    return table(columns, rows)


def _strategy_cells(strategy: str, found: Sequence[dict[str, Any]]) -> list[str]:
    """A line of the table: means over the seeds, and the largest of all."""
    one = found[0]
    return [
        strategy,
        *(str(one["horizon"][key]) for key in LIMITS),
        *(f"{mean(each['sizes'][name][-1] for each in found):,.0f}" for name in ("mean", "p95")),
        f"{max(each['sizes']['max'][-1] for each in found):,}",
        _number(one["bound"]),
        f"{max(each['most_added'] for each in found):,}",
        _number(one["bound_added"]),
        percentage(mean(each["coverage"] for each in found)),
    ]


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _strategies_told(request: Request, results: dict[str, Result], grown: Grown) -> str:
    attention = [result for result in results.values() if "training" in result]
    kept = [each for setting in grown.values() for found in setting.values() for each in found]
    above = [
        each
        for each in kept
        if (each["bound"] is not None and each["sizes"]["max"][-1] > each["bound"])
        or (each["bound_added"] is not None and each["most_added"] > each["bound_added"])
    ]
    found = [
        f"with {SETTINGS[setting]} attention has the answer in its subgraph for "
        f"{_coverage(strategies, 'attention')} % of the questions, three-times sampling, which has the same bound, "
        f"for {_coverage(strategies, 'three_times')} %"
        for setting, strategies in grown.items()
    ]
    told = [
        f"{counted(attention[0]['queries'], 'test question')} of {results['expansion']['dataset']}: "
        f"{'; '.join(found)}.",
        "Bounds that hold for every question are kept by all subgraphs."
        if not above
        else f"{counted(len(above), 'strategy', 'strategies')} broke a bound that should hold for every question.",
        _trained_told(request, attention),
    ]
    return " ".join(told) + "\n"


def _coverage(strategies: dict[str, list[dict[str, Any]]], strategy: str) -> str:
    return percentage(mean(each["coverage"] for each in strategies[strategy]))


def _trained_told(request: Request, attention: Sequence[Result]) -> str:
    epochs = [result["training"]["queries"] / result["queries_of_an_epoch"] for result in attention]
    shown_epochs = list(dict.fromkeys(f"{count:.2g}" for count in (min(epochs), max(epochs))))
    told = f"Attention is that of a model trained for {' to '.join(shown_epochs)} epochs"
    if request.quick:
        return f"{told} of the bundled graph, with small settings."
    return f"{told}; the paper has no figures for this section."


def _expansion_table(expansion: Result) -> str:
    columns = ["d", "nodes with at most d neighbours", "ends of edges with at most d"]
    columns += [text for step in _TABLE_STEPS for text in (f"bound, step {step}", "promised", "measured")]
    rows = []
    for bound in expansion["bounds"]:
        cells = [str(bound["d"]), percentage(bound["p"]), percentage(bound["p_along_edges"])]
        for step in bound["steps"][: len(_TABLE_STEPS)]:
            beyond = step["bound"] >= expansion["n_entities"]
            cells += [
                "the graph" if beyond else f"{step['bound']:,}",
                percentage(step["probability"]),
                percentage(step["within"]),
            ]
        rows.append(cells)
    return "The proposition, in percent of all nodes:\n\n" + table(columns[: len(rows[0])], rows)


def _expansion_told(expansion: Result) -> str:
    """Whether full expansion keeps the proposition's promise, and what is amiss where it does not."""
    cases = [{"d": bound["d"], **step} for bound in expansion["bounds"] for step in bound["steps"]]
    failed = broken(cases)
    told = (
        f"Nodes have {expansion['mean_degree']:.1f} neighbours on average and {expansion['max_degree']:,} at most, "
        f"and full expansion was measured from all {expansion['n_entities']:,} of them. "
        f"At least as many nodes as promised keep within the bound in {len(cases) - len(failed)} of "
        f"{counted(len(cases), 'case')} of d and step"
    )
    if not failed:
        return f"{told}.\n"
    where = [
        f"d = {d} at step {listed([str(case['step']) for case in failed if case['d'] == d])}"
        for d in dict.fromkeys(case["d"] for case in failed)
    ]
    return (
        f"{told}; it fails for {listed(where)}. There the proposition assumes that a node is as likely to have at most "
        "d neighbours however it was reached. But nodes are reached along edges, so those with many neighbours are "
        "reached more often: the third column is below the second.\n"
    )


def _increment_table(strategies: dict[str, list[dict[str, Any]]]) -> str:
    one, two = (strategies[name][0] for name in ("nodes", "nodes_and_boundary"))
    rows = [
        [
            str(first["d"]),
            percentage(first["probability"]),
            f"{first['bound']:,}",
            percentage(first["within"]),
            f"{second['bound']:,}",
            percentage(second["within"]),
        ]
        for first, second in zip(one["by_degree"], two["by_degree"], strict=True)
    ]
    columns = ["d", "promised", "nodes: bound", "measured", "nodes_and_boundary: bound", "measured"]
    return "Nodes added by a step with the preset's horizon, in percent of all steps:\n\n" + table(
        columns, rows
    )


def _increments_told(grown: Grown) -> str:
    cases = [
        case
        for strategies in grown.values()
        for found in strategies.values()
        for each in found
        for case in each["by_degree"]
    ]
    failed = broken(cases)
    told = (
        "Promised is p^N1, the probability that none of N1 nodes has more than d neighbours. "
        f"At least as many steps keep within the bound in {len(cases) - len(failed)} of {counted(len(cases), 'case')}"
    )
    reason = "; where fewer do, the nodes to expand had been reached along edges, and so have more neighbours"
    return told + reason * bool(failed) + ".\n"
