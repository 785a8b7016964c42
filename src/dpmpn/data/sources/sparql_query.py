"""A SPARQL query cut into pages: LIMIT and OFFSET added in the right place, in an order that stays the same."""

import re
from dataclasses import dataclass

from dpmpn.errors import DataError

# What may hold anything at all: IRIs, texts of four kinds, comments.
_OPAQUE = re.compile(
    r"<[^<>\"{}|^`\\\s]*>"
    r'|"""(?:[^\\]|\\.)*?"""'
    r"|'''(?:[^\\]|\\.)*?'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'"
    r"|\#[^\n]*",
    re.DOTALL,
)
_VARIABLE = re.compile(r"[?$](\w+)")


@dataclass(frozen=True)
class PagedQuery:
    """A SELECT or CONSTRUCT query that can be asked for page by page, if it has no LIMIT of its own."""

    text: str
    is_select: bool
    is_paged: bool
    _end: int  # where the solution modifiers end
    _order: str

    @classmethod
    def of(cls, text: str | None) -> "PagedQuery":
        """Look at a query; variables it is ordered by are those it selects, if it has no order of its own."""
        plain = _OPAQUE.sub(lambda match: " " * len(match[0]), text or "")
        outer = _at_top_level(plain)
        kind = re.search(
            r"\b(SELECT|CONSTRUCT|ASK|DESCRIBE|INSERT|DELETE|LOAD|CLEAR|DROP)\b", outer, re.IGNORECASE
        )
        if text is None or not kind or kind[1].upper() not in ("SELECT", "CONSTRUCT"):
            raise DataError(
                "a SPARQL endpoint needs a query; give --query with a SELECT of three variables or a CONSTRUCT"
            )
        is_select = kind[1].upper() == "SELECT"
        last = re.search(r"\bVALUES\b", outer, re.IGNORECASE)
        order = ""
        if not re.search(r"\bORDER\s+BY\b", outer, re.IGNORECASE):
            names = _selected(plain, outer, kind.end()) if is_select else []
            names = names or list(dict.fromkeys(_VARIABLE.findall(plain)))
            order = "ORDER BY " + " ".join(f"?{name}" for name in names) + " " if names else ""
        return cls(
            text=text,
            is_select=is_select,
            is_paged=not re.search(r"\b(LIMIT|OFFSET)\b", outer, re.IGNORECASE),
            _end=last.start() if last else len(text),
            _order=order,
        )

    def page(self, limit: int, offset: int) -> str:
        """The query for some of its rows."""
        if not self.is_paged:
            return self.text
        before, after = self.text[: self._end], self.text[self._end :]
        return f"{before}\n{self._order}LIMIT {limit} OFFSET {offset}\n{after}"


def _at_top_level(plain: str) -> str:
    """The query with everything inside brackets blanked."""
    depth, result = 0, []
    for character in plain:
        depth -= character in "})"
        result.append(character if depth <= 0 else " ")
        depth += character in "{("
    return "".join(result)


def _selected(plain: str, outer: str, start: int) -> list[str]:
    """Variables of a SELECT clause, those of `(... AS ?name)` included; none for `*`."""
    end = re.compile(r"\bWHERE\b|\bFROM\b|\{", re.IGNORECASE).search(outer, start)
    stop = end.start() if end else len(outer)
    aliases = re.finditer(r"\bAS\s+[?$](\w+)\s*\)", plain[start:stop], re.IGNORECASE)
    found = [*_VARIABLE.finditer(outer[start:stop]), *aliases]
    return [match[1] for match in sorted(found, key=lambda match: match.start())]
