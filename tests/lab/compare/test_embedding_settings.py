"""The table of settings in the documentation is the one in the code."""

from dataclasses import replace
from itertools import product
from pathlib import Path

from dpmpn.lab.compare.contestants import embedding_label
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS, SMALL

PAGE = Path(__file__).parents[3] / "docs" / "compare.md"
COLUMNS = ("Model", "Dimension", "Loss", "Batch", "Optimiser, rate", "Regulariser", "Inverse relations")


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
