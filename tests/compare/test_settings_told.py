"""The table of settings in the documentation is the one in the code."""

from itertools import product
from pathlib import Path

from dpmpn.compare.entrants import embedding_label
from dpmpn.compare.settings import EMBEDDING_MODELS, SMALL

PAGE = Path(__file__).parents[2] / "docs" / "compare.md"
COLUMNS = ("Model", "Dimension", "Loss", "Batch", "Optimiser, rate", "Regulariser", "Inverse relations")


def settings_table() -> str:
    lines = [" | ".join(COLUMNS), "|".join(["---"] * len(COLUMNS))]
    for name, size_of_graph in product(EMBEDDING_MODELS, (SMALL + 1, SMALL)):
        is_small = size_of_graph == SMALL
        if is_small and not EMBEDDING_MODELS[name].on_small:
            continue
        settings = EMBEDDING_MODELS[name].suited_to(size_of_graph)
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


def test_documented_settings_are_those_of_the_code():
    page = PAGE.read_text("utf-8")
    told = page.partition("<!-- settings: begin -->\n")[2].partition("<!-- settings: end -->")[0]
    assert told == settings_table()
