"""Section 2: how fast subgraphs grow, what the bounds promise, and whether the answer is in what is left."""

from collections.abc import Sequence
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from dpmpn.lab.figures import COLOURS, MARKERS, new_figure, table
from dpmpn.lab.reproduce.exhibit import Exhibit, Piece
from dpmpn.lab.reproduce.workshop import LIMITS, Request, Result, training_seconds
from dpmpn.wording import counted, listed, percentage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Grown = dict[str, dict[str, list[dict[str, Any]]]]
"""What was measured, of each seed: by setting, then strategy."""
SETTINGS = {"preset": "the preset's horizon", "quarter": "a quarter of it"}
_DASHED = (0, (4, 3))
_TABLE_STEPS = (1, 2, 3)  # later bounds are above the size of the graph for all but the smallest d
_ROUNDING = 1e-9


class Growth(Exhibit):
    """Sizes of subgraphs by full expansion, by sampling and by attention, held against their bounds."""

    name = "growth"
    title = "Growth of subgraphs"
    place = "Section 2"
    claim = (
        "Sampling bounds how far subgraphs grow, but smaller samples have less chance to hit the target; "
        "attention is to select more efficiently than random sampling. The paper argues this without measuring it."
    )
    datasets = ("FB15K-237", "WN18RR")
    fields = (
        *("part", "seed", "setting", "strategy", "d", "step", "bound", "probability", "within"),
        *("mean", "p95", "max", "coverage"),
    )

    def pieces(self, request: Request) -> list[Piece]:
        """Full expansion once, sampling and attention for each seed."""
        from dpmpn.lab.reproduce.expansion import QUERIES, attended, expanded, growth_config, sampled

        dataset = self.dataset(request)
        pieces = [Piece("expansion", 2e-3 * dataset.graph.n_entities, partial(expanded, request, dataset))]
        for seed in request.seeds:
            config = growth_config(request, dataset, seed)
            n_queries = config.training.n_epochs * len(dataset.queries("train"))
            n_asked = 2 * QUERIES + config.training.validation_queries
            seconds = training_seconds(request, dataset.name, n_queries, n_asked)
            slow = 3 if request.quick else 80  # strategy 1 scans most of the graph for every query
            pieces += [
                Piece(f"sampling-seed{seed}", slow, partial(sampled, request, dataset, seed)),
                Piece(f"attention-seed{seed}", seconds, partial(attended, request, dataset, seed)),
            ]
        return pieces

    def rows(self, request: Request, results: Sequence[Result]) -> list[dict[str, Any]]:
        """Sizes and bounds of full expansion, then of each strategy."""
        found = [*_expansion_rows(_expansion(results)), *_strategy_rows(results)]
        return [{column: row.get(column) for column in self.fields} for row in found]

    def text(self, request: Request, results: Sequence[Result]) -> list[str]:
        """Strategies, full expansion and what a step adds, each with a table and sentences."""
        expansion, grown = _expansion(results), by_strategy(results)
        return [
            _strategy_table(expansion, grown),
            _strategies_note(request, expansion, results, grown),
            _expansion_table(expansion),
            _expansion_note(expansion),
            _increment_table(grown["preset"]),
            _increments_note(grown),
        ]

    def plot(self, results: Sequence[Result]) -> "Figure":
        """Promises, sizes with both horizons, and answers reached."""
        expansion, grown = _expansion(results), by_strategy(results)
        figure, axes = new_figure(10, 8, 2, 2)
        _draw_proposition(axes[0, 0], expansion)
        for panel, letter, setting in zip((axes[0, 1], axes[1, 0]), "BC", grown, strict=True):
            _draw_sizes(panel, expansion, grown[setting])
            panel.set_title(f"({letter}) nodes of a subgraph, {SETTINGS[setting]}")
        _draw_coverage(axes[1, 1], grown)
        return figure


def _expansion(results: Sequence[Result]) -> Result:
    """The one result that is not of a strategy."""
    return next(result for result in results if "bounds" in result)


def by_strategy(results: Sequence[Result]) -> Grown:
    """The subgraphs of all seeds, by setting and strategy."""
    found: Grown = {}
    for result in results:
        for grown in result.get("grown", []):
            of_setting = found.setdefault(grown["setting"], {})
            of_setting.setdefault(grown["horizon"]["strategy"], []).append(grown)
    return found


def broken(cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases where less kept within a bound than its probability promises."""
    return [case for case in cases if case["within"] < case["probability"] - _ROUNDING]


def _expansion_rows(expansion: Result) -> list[dict[str, Any]]:
    rows = _size_rows(expansion["sizes"], part="full expansion")
    rows[-1]["coverage"] = expansion["coverage"]
    for bound in expansion["bounds"]:
        rows += [{"part": "proposition", "d": bound["d"], **step} for step in bound["steps"]]
    return rows


def _strategy_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    rows = []
    for result in results:
        for grown in result.get("grown", []):
            shared = {
                "seed": result["seed"],
                "setting": grown["setting"],
                "strategy": grown["horizon"]["strategy"],
            }
            sizes = _size_rows(grown["sizes"], part="subgraphs", **shared)
            sizes[-1] |= {"bound": grown["bound"], "coverage": grown["coverage"]}
            rows += sizes
            rows += [{"part": "nodes added by a step", **shared, **case} for case in grown["by_degree"]]
    return rows


def _size_rows(sizes: dict[str, list[float]], **shared: Any) -> list[dict[str, Any]]:
    names = ("mean", "p95", "max")
    values = zip(*(sizes[name] for name in names), strict=True)
    return [{**shared, "step": at, **dict(zip(names, each, strict=True))} for at, each in enumerate(values)]


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


def _strategies_note(request: Request, expansion: Result, results: Sequence[Result], grown: Grown) -> str:
    attention = [result for result in results if "training" in result]
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
    sentences = [
        f"{counted(attention[0]['queries'], 'test question')} of {expansion['dataset']}: {'; '.join(found)}.",
        "Bounds that hold for every question are kept by all subgraphs."
        if not above
        else f"{counted(len(above), 'strategy', 'strategies')} broke a bound that should hold for every question.",
        _trained_note(request, attention),
    ]
    return " ".join(sentences) + "\n"


def _coverage(strategies: dict[str, list[dict[str, Any]]], strategy: str) -> str:
    return percentage(mean(each["coverage"] for each in strategies[strategy]))


def _trained_note(request: Request, attention: Sequence[Result]) -> str:
    epochs = [result["training"]["queries"] / result["queries_of_an_epoch"] for result in attention]
    shown_epochs = list(dict.fromkeys(f"{count:.2g}" for count in (min(epochs), max(epochs))))
    trained = f"Attention is that of a model trained for {' to '.join(shown_epochs)} epochs"
    if request.quick:
        return f"{trained} of the bundled graph, with small settings."
    return f"{trained}; the paper has no figures for this section."


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


def _expansion_note(expansion: Result) -> str:
    """Whether full expansion keeps the proposition's promise, and what is amiss where it does not."""
    cases = [{"d": bound["d"], **step} for bound in expansion["bounds"] for step in bound["steps"]]
    failed = broken(cases)
    kept = (
        f"Nodes have {expansion['mean_degree']:.1f} neighbours on average and {expansion['max_degree']:,} at most, "
        f"and full expansion was measured from all {expansion['n_entities']:,} of them. "
        f"At least as many nodes as promised keep within the bound in {len(cases) - len(failed)} of "
        f"{counted(len(cases), 'case')} of d and step"
    )
    if not failed:
        return f"{kept}.\n"
    where = [
        f"d = {d} at step {listed([str(case['step']) for case in failed if case['d'] == d])}"
        for d in dict.fromkeys(case["d"] for case in failed)
    ]
    return (
        f"{kept}; it fails for {listed(where)}. There the proposition assumes that a node is as likely to have at most "
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


def _increments_note(grown: Grown) -> str:
    cases = [
        case
        for strategies in grown.values()
        for found in strategies.values()
        for each in found
        for case in each["by_degree"]
    ]
    failed = broken(cases)
    kept = (
        "Promised is p^N1, the probability that none of N1 nodes has more than d neighbours. "
        f"At least as many steps keep within the bound in {len(cases) - len(failed)} of {counted(len(cases), 'case')}"
    )
    reason = "; where fewer do, the nodes to expand had been reached along edges, and so have more neighbours"
    return kept + reason * bool(failed) + ".\n"


def _draw_proposition(axes: "Axes", expansion: Result) -> None:
    """Promised and measured shares over the steps, for the values of d where they are not all alike."""
    telling = [bound for bound in expansion["bounds"] if bound["p"] < 1][: len(COLOURS) - 2]
    for bound, colour, marker in zip(telling, COLOURS, MARKERS, strict=False):
        steps = [step["step"] for step in bound["steps"]]
        looks: Any = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.3}
        axes.plot(steps, [100 * s["within"] for s in bound["steps"]], label=f"d = {bound['d']}", **looks)
        axes.plot(steps, [100 * s["probability"] for s in bound["steps"]], linestyle=_DASHED, **looks)
    axes.set(xlabel="step", ylabel="percent of nodes", ylim=(-3, 103))
    axes.set_xticks(range(1, len(expansion["sizes"]["mean"])))
    axes.set_title("(A) within the proposition's bound; dashed: promised")
    axes.legend(frameon=False, fontsize=8)


def _draw_sizes(axes: "Axes", expansion: Result, strategies: dict[str, list[dict[str, Any]]]) -> None:
    """Mean sizes over the steps on a logarithmic axis; the bounds that hold for every question are dashed."""
    full = expansion["sizes"]["mean"]
    axes.plot(full, color=COLOURS[-1], linewidth=1.3, label="full expansion")
    for (strategy, found), colour, marker in zip(strategies.items(), COLOURS, MARKERS, strict=False):
        means = [mean(sizes) for sizes in zip(*(each["sizes"]["mean"] for each in found), strict=True)]
        axes.plot(means, color=colour, marker=marker, markersize=4, linewidth=1.3, label=strategy)
        added = found[0]["bound_added"]
        if added is not None and strategy != "attention":  # whose bound is that of three_times
            bounds = [1 + step * added for step in range(len(means))]
            axes.plot(bounds, color=colour, linewidth=1, linestyle=_DASHED, label=f"bound of {strategy}")
    axes.set_yscale("log")
    axes.set_xticks(range(len(full)))
    axes.set(xlabel="step", ylabel="nodes, mean over the questions")
    axes.legend(frameon=False, fontsize=7)


def _draw_coverage(axes: "Axes", grown: Grown) -> None:
    strategies = list(next(iter(grown.values())))
    height = 0.8 / len(grown)
    for at, (setting, found) in enumerate(grown.items()):
        values = [100 * mean(each["coverage"] for each in found[strategy]) for strategy in strategies]
        places = [place + (at - (len(grown) - 1) / 2) * height for place in range(len(strategies))]
        axes.barh(places, values, height, color=COLOURS[at], label=SETTINGS[setting])
    axes.set_yticks(range(len(strategies)), strategies)
    axes.invert_yaxis()
    axes.set(xlabel="percent of the questions", xlim=(0, 100))
    axes.set_title("(D) answer in the subgraph")
    axes.legend(frameon=False, fontsize=8)


GROWTH = Growth()
