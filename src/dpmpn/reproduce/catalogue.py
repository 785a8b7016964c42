"""All exhibits, in the order of the paper; then those that go beyond it."""

from dpmpn.data.vocabulary import near_names
from dpmpn.errors import UnknownName
from dpmpn.reproduce.ablation import ABLATION
from dpmpn.reproduce.attention_flow import ATTENTION_FLOW
from dpmpn.reproduce.convergence import CONVERGENCE
from dpmpn.reproduce.datasets import DATASETS
from dpmpn.reproduce.exhibit import Exhibit
from dpmpn.reproduce.growth import GROWTH
from dpmpn.reproduce.horizons import HORIZONS
from dpmpn.reproduce.ignn import IGNN
from dpmpn.reproduce.nell995 import NELL995
from dpmpn.reproduce.scores import SCORES
from dpmpn.reproduce.strong import STRONG
from dpmpn.reproduce.subgraphs import SUBGRAPHS
from dpmpn.reproduce.time_cost import TIME_COST
from dpmpn.reproduce.unseen import UNSEEN

EXHIBITS: dict[str, Exhibit] = {
    exhibit.name: exhibit
    for exhibit in (
        DATASETS,
        *SCORES,
        NELL995,
        CONVERGENCE,
        IGNN,
        HORIZONS,
        TIME_COST,
        ATTENTION_FLOW,
        SUBGRAPHS,
        GROWTH,
        STRONG,
        ABLATION,
        UNSEEN,
    )
}


def exhibit_named(name: str) -> Exhibit:
    """An exhibit by its name."""
    if name not in EXHIBITS:
        near = near_names(name, list(EXHIBITS))
        raise UnknownName("exhibit", name, near, "`dpmpn reproduce --list` shows them")
    return EXHIBITS[name]
