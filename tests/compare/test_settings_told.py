"""The table of settings in the documentation is the one in the code."""

from pathlib import Path

from dpmpn.compare.entrants import embedding_label
from dpmpn.compare.settings import EMBEDDING_MODELS

PAGE = Path(__file__).parents[2] / "docs" / "compare.md"
COLUMNS = ("Model", "Dimension", "Loss", "Batch", "Optimiser, rate", "Regulariser", "Inverse relations")


def settings_table() -> str:
    lines = [" | ".join(COLUMNS), "|".join(["---"] * len(COLUMNS))]
    for name, settings in EMBEDDING_MODELS.items():
        is_complex = settings.pykeen_model in ("ComplEx", "RotatE")
        size = f"{settings.dimension}{' complex' * is_complex}"
        if (relation_dim := settings.options.get("relation_dim")) is not None:
            size += f", relations {relation_dim}"
        cells = (
            f"{embedding_label(name)} (`{name}`)",
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


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition("<!-- settings: begin -->\n")
    after = rest.partition("<!-- settings: end -->")[2]
    PAGE.write_text(
        f"{before}<!-- settings: begin -->\n{settings_table()}<!-- settings: end -->{after}", "utf-8"
    )
