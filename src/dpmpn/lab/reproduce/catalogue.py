"""All exhibits, in the order of the paper; then those that go beyond it."""

from dpmpn.data.vocabulary import near_names
from dpmpn.errors import UnknownName
from dpmpn.lab.reproduce.ablation import ABLATION
from dpmpn.lab.reproduce.attention_flow import ATTENTION_FLOW
from dpmpn.lab.reproduce.convergence import CONVERGENCE
from dpmpn.lab.reproduce.datasets import DATASETS
from dpmpn.lab.reproduce.exhibit import Exhibit
from dpmpn.lab.reproduce.growth import GROWTH
from dpmpn.lab.reproduce.horizons import HORIZONS
from dpmpn.lab.reproduce.ignn import IGNN
from dpmpn.lab.reproduce.nell995 import NELL995
from dpmpn.lab.reproduce.scores import SCORES
from dpmpn.lab.reproduce.strong import STRONG
from dpmpn.lab.reproduce.subgraphs import SUBGRAPHS
from dpmpn.lab.reproduce.time_cost import TIME_COST
from dpmpn.lab.reproduce.unseen import UNSEEN

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
