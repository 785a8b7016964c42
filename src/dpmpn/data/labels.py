"""What identifiers are called: a name to show, a description and a type, from files or from the facts' source."""

from dataclasses import dataclass

import polars as pl

from dpmpn.data.sources.base import LABELS

TYPES_APART = " | "  # between the types of an entity that has several


@dataclass(frozen=True, eq=False)
class Labels:
    """Three columns in the order of a vocabulary's ids; null where nothing is known."""

    name: pl.Series
    description: pl.Series
    type: pl.Series

    @classmethod
    def of(cls, frame: pl.DataFrame, identifiers: pl.Series) -> "Labels | None":
        """The labels of some identifiers, from a frame of all (columns of LABELS); None where none has any."""
        asked = pl.DataFrame({"id": identifiers})
        found = asked.join(merged_labels(frame), on="id", how="left", maintain_order="left")
        columns = {column: found[column] for column in LABELS if column != "id"}
        if all(column.null_count() == len(column) for column in columns.values()):
            return None
        return cls(**columns)

    def frame(self) -> pl.DataFrame:
        """The three columns as one frame."""
        return pl.DataFrame([self.name, self.description, self.type])

    def extended(self, count: int) -> "Labels":
        """The labels with `count` more rows that have none."""
        return Labels(
            *(column.extend_constant(None, count) for column in (self.name, self.description, self.type))
        )


def merged_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """One row an identifier: the first name and description that are not empty, and all types."""
    texts = [pl.col(column).str.strip_chars().replace("", None) for column in ("name", "description", "type")]
    return (
        frame.select("id", *texts)
        .group_by("id", maintain_order=True)
        .agg(
            pl.col("name", "description").drop_nulls().first(),
            pl.col("type").drop_nulls().unique(maintain_order=True).str.join(TYPES_APART).replace("", None),
        )
    )
