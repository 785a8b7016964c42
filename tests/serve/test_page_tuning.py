"""The page while a model is tuned: it says which one answers, how far the other is, and when it changed over."""

from pages import Open
from serving import serving

import dpmpn
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.pretrained import shipped
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train
from dpmpn.train.tuning import tuned_config

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]


def test_the_page_says_which_model_answers(opened: Open, tmp_path) -> None:
    dataset = dpmpn.dataset_from_tuples(FACTS, valid=[("child7", "father", "father7")], name="family")
    config, _ = tuned_config(dataset, shipped(), {"n_epochs": 1, "batch_size": 8, "threads": 1})
    run = RunFolder.create(tmp_path / "run", dataset, config, shipped())
    with serving(run.path) as server:
        server.explorer.tuning = {"state": "tuning", "done": 10, "total": 40, "eta_seconds": 100.0}
        page = opened("?head=child7&relation=father", url=server.url)
        page.sees("#tuning", "The model for any graph is answering.")
        page.sees("#tuning", "at most 2 min left")
        assert page.locator("#tuning progress").get_attribute("value") == "10"
        page.sees(".answers button")
        train(run, dataset, config)
        server.explorer.change(Reasoner.load(run.path).in_memory(), run.path)
        server.explorer.tuning = {"state": "done", "mrr": 0.5, "tuned_mrr": 0.625}
        page.sees(
            "#tuning", "The model tuned to these facts is answering. Validation MRR 0.625, previously 0.500."
        )
        assert page.calls("ask") == 1
        page.click("#tuning button")
        page.sees(".answers button")
        page.has("#tuning button", 0)
        assert page.calls("ask") == 2 and not page.troubles
        asked = page.calls("tuning")
        page.wait_for_timeout(2500)
        assert page.calls("tuning") == asked  # nothing is to come


def test_where_nothing_is_tuned_nothing_is_said(opened: Open) -> None:
    page = opened()
    page.sees("#start", "Ask this graph")
    assert not page.locator("#tuning").is_visible()
