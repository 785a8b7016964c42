"""Settings of embedding models against their documentation, quick scores against PyKEEN's own."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from dpmpn.lab.compare.contestants import EmbeddingModel, embedding_label
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS, SMALL

PAGE = Path(__file__).parents[3] / "docs" / "compare.md"
COLUMNS = ("Model", "Dimension", "Loss", "Batch", "Optimiser, rate", "Regulariser", "Inverse relations")
SIZES = {"transr": {"dimension": 6, "options": {"relation_dim": 4}}, "conve": {"dimension": 20}}


def settings_table() -> str:
    lines = [" | ".join(COLUMNS), "|".join(["---"] * len(COLUMNS))]
    for name, size_of_graph in product(EMBEDDING_MODELS, (SMALL + 1, SMALL)):
        is_small = size_of_graph == SMALL
        if is_small and not EMBEDDING_MODELS[name].on_small:
            continue
        settings = replace(
            EMBEDDING_MODELS[name].suited_to("", size_of_graph),
            published_n3=EMBEDDING_MODELS[name].published_n3,
        )
        is_complex = settings.pykeen_model in ("ComplEx", "RotatE")
        size = f"{settings.dimension}{' complex' * is_complex}"
        if (relation_dim := settings.options.get("relation_dim")) is not None:
            size += f", relations {relation_dim}"
        cells = (
            "on small graphs" if is_small else f"{embedding_label(name)} (`{name}`)",
            size,
            settings.loss,
            f"{settings.batch_size}",
            f"{settings.optimiser}, {settings.learning_rate:g}",
            settings.regulariser,
            "yes" if settings.inverse_relations else "no",
        )
        lines.append(" | ".join(cells))
    return "".join(f"| {line} |\n" if "---" not in line else f"|{line}|\n" for line in lines)


def test_published_weights_are_taken_and_told():
    page, settings = PAGE.read_text("utf-8"), EMBEDDING_MODELS["complex-n3"]
    assert settings.suited_to("WN18RR", 40_943).n3 == 0.1
    assert settings.suited_to("WN18", 40_943).n3 == 0.005
    assert settings.suited_to("FB15K", 14_951).n3 == 0.00001
    assert settings.suited_to("another", 14_951).n3 == 0.05
    for dataset, weight in settings.published_n3.items():
        assert f"| {dataset} | {weight:.5f}".rstrip("0") + " |\n" in page


def test_documented_settings_are_those_of_the_code():
    page = PAGE.read_text("utf-8")
    told = page.partition("<!-- settings: begin -->\n")[2].partition("<!-- settings: end -->")[0]
    assert told == settings_table()


def made(name, dataset, **changes):
    settings = EMBEDDING_MODELS[name]
    small = {"dimension": 8, "batch_size": 16, **SIZES.get(name, {}), **changes}
    small["options"] = settings.options | small.get("options", {})
    return EmbeddingModel(dataset, replace(settings, **small), seed=3, threads=1)


def pykeen_scores(contestant, queries):
    """PyKEEN's score of every entity for each query: tails, or heads where there is no inverse relation."""
    rows = []
    contestant.network.eval()
    for head, relation in queries[:, :2].tolist():
        if contestant.settings.inverse_relations or relation < contestant.n_forward:
            rows.append(contestant.network.score_t(torch.tensor([[head, relation]])))
        else:
            rows.append(contestant.network.score_h(torch.tensor([[relation - contestant.n_forward, head]])))
    return torch.cat(rows).detach().numpy()


@pytest.mark.parametrize("name", EMBEDDING_MODELS)
def test_scores_are_those_of_pykeen(name, families):
    contestant = made(name, families)
    for _ in range(40):  # away from the initial vectors, and batch norms away from theirs
        contestant.train_batch()
    queries = np.concatenate([families.queries("test"), families.queries("train")[::5]])
    contestant.network.eval()
    scores = contestant.scores(queries[:, 0], queries[:, 1])
    expected = pykeen_scores(contestant, queries)
    assert scores.shape == (len(queries), families.graph.n_entities)
    assert np.std(expected) > 0.05
    # Distances by way of a matrix product lose some digits near zero.
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=2e-3 if name in ("rotate",) else 1e-4)


@pytest.mark.parametrize("name", EMBEDDING_MODELS)
def test_scores_of_candidates_are_those_among_all(name, families):
    contestant = made(name, families)
    contestant.network.eval()
    queries = torch.from_numpy(families.queries("test").astype(np.int64))
    candidates = torch.arange(10).expand(len(queries), -1)
    asked = contestant._directed(queries[:, 0], queries[:, 1])
    some = contestant.form.scores_of_some(*asked, candidates)
    every = contestant.form.scores_of_all(*asked)
    torch.testing.assert_close(some, every[:, :10], rtol=1e-3, atol=2e-3)
