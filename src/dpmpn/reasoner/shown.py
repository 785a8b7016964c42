"""What a reasoner shows of itself: which model it has, on which graph, and how good it was on validation facts."""

from html import escape
from typing import TYPE_CHECKING

from dpmpn.wording import counted, listed, one_line

if TYPE_CHECKING:
    from dpmpn.reasoner.asked_model import AskedModel
    from dpmpn.train.run_folder import RunFolder


def facts_about(reasoner: "AskedModel", run: "RunFolder | None") -> dict[str, str]:
    """What is worth knowing of a reasoner that has a graph, by title; `run` is the one it was trained in there."""
    dataset, graph = reasoner.dataset, reasoner.graph
    splits = {"validation": dataset.valid, "test": dataset.test}
    held_out = [counted(len(facts), f"{name} fact") for name, facts in splits.items() if len(facts)]
    sizes = (
        counted(graph.n_entities, "entity", "entities"),
        counted(graph.n_forward, "relation"),
        counted(len(dataset.train), "fact"),
    )
    shown = {
        "model": f"{reasoner.config.model.name}, {'pre-trained' if reasoner.is_pretrained else 'trained'}",
        "graph": f"{one_line(dataset.name)}: {', '.join(sizes)}",
        "held out": listed(held_out) or "nothing",
    }
    if run is not None:
        from dpmpn.train.checkpoint import best_kept

        best = best_kept(run.path)
        if best is not None:
            shown["validation MRR"] = f"{best.mrr:.3f}"
    if not reasoner.is_pretrained:
        is_measured = reasoner.calibration is not None
        shown["probabilities"] = "measured" if is_measured else "unknown; answers have scores"
    return shown


def as_table(shown: dict[str, str]) -> str:
    """The same as a table of HTML."""
    rows = "".join(
        f"<tr><th>{escape(title)}</th><td>{escape(text)}</td></tr>" for title, text in shown.items()
    )
    return f"<table><caption>Reasoner</caption><tbody>{rows}</tbody></table>"
