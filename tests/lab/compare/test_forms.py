"""Quick scores against PyKEEN's own, for every model of the table."""

import dataclasses

import numpy as np
import pytest
import torch

from dpmpn.lab.compare.embedding import EMBEDDING_MODELS, EmbeddingModel

SMALL = {"transr": {"dimension": 6, "options": {"relation_dim": 4}}, "conve": {"dimension": 20}}


def made(name, dataset, **changes):
    settings = EMBEDDING_MODELS[name]
    small = {"dimension": 8, "batch_size": 16, **SMALL.get(name, {}), **changes}
    small["options"] = settings.options | small.get("options", {})
    return EmbeddingModel(dataset, dataclasses.replace(settings, **small), seed=3, threads=1)


def pykeen_scores(contestant, queries):
    """PyKEEN's score of every entity for each query: tails, or heads where there is no inverse relation."""
    rows = []
    contestant.model.eval()
    for head, relation in queries[:, :2].tolist():
        if contestant.settings.inverse_relations or relation < contestant.n_forward:
            rows.append(contestant.model.score_t(torch.tensor([[head, relation]])))
        else:
            rows.append(contestant.model.score_h(torch.tensor([[relation - contestant.n_forward, head]])))
    return torch.cat(rows).detach().numpy()


@pytest.mark.parametrize("name", EMBEDDING_MODELS)
def test_scores_are_those_of_pykeen(name, families):
    contestant = made(name, families)
    for _ in range(40):  # away from the initial vectors, and batch norms away from theirs
        contestant.train_batch()
    queries = np.concatenate([families.queries("test"), families.queries("train")[::5]])
    contestant.model.eval()
    scores = contestant.scores(queries[:, 0], queries[:, 1])
    expected = pykeen_scores(contestant, queries)
    assert scores.shape == (len(queries), families.graph.n_entities)
    assert np.std(expected) > 0.05
    # Distances by way of a matrix product lose some digits near zero.
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=2e-3 if name in ("rotate",) else 1e-4)


@pytest.mark.parametrize("name", EMBEDDING_MODELS)
def test_scores_of_candidates_are_those_among_all(name, families):
    contestant = made(name, families)
    contestant.model.eval()
    queries = torch.from_numpy(families.queries("test").astype(np.int64))
    candidates = torch.arange(10).expand(len(queries), -1)
    asked = contestant._directed(queries[:, 0], queries[:, 1])
    some = contestant.form.scores_of_some(*asked, candidates)
    every = contestant.form.scores_of_all(*asked)
    torch.testing.assert_close(some, every[:, :10], rtol=1e-3, atol=2e-3)
