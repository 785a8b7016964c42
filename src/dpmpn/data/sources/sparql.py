"""Facts of a SPARQL endpoint, asked for page by page over HTTP."""

import hashlib
import http.client
import re
import time
import urllib.error
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import polars as pl

from dpmpn.data.sources.base import TIME, Account, ReadOptions, short
from dpmpn.data.sources.columns import find_columns, output_names, refuse_rows
from dpmpn.data.sources.rdf import Statements, StatementSource, pyoxigraph
from dpmpn.data.web import open_web, split_password, web_request
from dpmpn.errors import DataError

# What may hold anything at all: IRIs, texts in four kinds of quotes, comments.
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
PAGE = 10_000  # rows; what large public endpoints give at most
_TRIES = 5
_LONGEST_PAUSE = 120.0  # seconds, whatever the endpoint asks for
_TRY_AGAIN = (429, 502, 503, 504)
_LARGEST_ANSWER = 512 << 20  # bytes of a page
_SILENCE = 120.0  # seconds without a byte
_LONGEST_ANSWER = 900.0  # seconds for a page
_LONGEST_ADDRESS = 2000  # characters; longer queries are posted
_SELECTED, _CONSTRUCTED = "application/sparql-results+json", "application/n-triples, text/turtle;q=0.9"


class SparqlSource(StatementSource):
    """Facts a query selects or constructs.

    A query without LIMIT is asked for page by page, ordered by its variables where it has no order of its own, until
    a page is empty: an endpoint may give less than a page was asked for. Blank nodes are named apart by page, as
    endpoints number them anew in each answer.
    """

    def __init__(self, url: str, options: ReadOptions, page: int = PAGE) -> None:
        try:
            address, self._authorization = split_password(url)
        except ValueError as error:
            raise DataError(
                "the address of a SPARQL endpoint begins with http:// or https:// and a host"
            ) from error
        self._url = urllib.parse.urldefrag(address).url
        shown = self._url.partition("?")[0]
        self.account = Account(shown)
        self._options, self._page = options, page
        self._query = PagedQuery.of(options.query)
        if options.time_column is not None and not self._query.is_select:
            raise DataError(
                f"{shown}: CONSTRUCT gives no column '{options.time_column}'; use SELECT for facts with time"
            )
        self._statements = Statements(self.account, options)
        self._rows, self._digest = 0, b""  # what was asked for, and what tells the last page from others
        pyoxigraph()

    def _batches(self) -> Iterator[pl.DataFrame]:
        number, before = 0, b""
        while True:
            number += 1
            read = self.account.read
            facts = self._facts(self._query.page(self._page, self._rows), number)
            count = self.account.read - read
            if self._query.is_paged:
                self._check_page(count, before)
            before = self._digest
            # A page of CONSTRUCT is one of solutions; how many of them made these statements is not said.
            self._rows += count if self._query.is_select else self._page
            yield facts
            if not count or not self._query.is_paged:
                return

    def position(self) -> tuple[int, int | None]:
        """Rows asked for so far; how many there are is not known."""
        return self._rows, None

    def _check_page(self, count: int, before: bytes) -> None:
        """Refuse an answer that is no page, or the page there was before: there would be no end of them."""
        if self._query.is_select and count > self._page:
            raise DataError(
                f"{self.account.source}: gives {count:,} rows where {self._page:,} were asked for, so it does not know "
                "LIMIT; give the query a LIMIT of its own, as large as you like"
            )
        if self._digest and self._digest == before:
            raise DataError(
                f"{self.account.source}: gives the same rows for every page, so it does not know OFFSET; "
                "give the query a LIMIT"
            )

    def _facts(self, query: str, page: int) -> pl.DataFrame:
        self._statements.scope = f"page{page}" if self._query.is_paged else ""
        content, media_type = self._ask(query)
        try:
            if self._query.is_select:
                return self._selected(content)
            return self._constructed(content, media_type)
        except (SyntaxError, ValueError) as error:
            begin = short(" ".join(content[:200].decode("utf-8", "replace").split()))
            raise DataError(
                f"{self.account.source}: does not answer as a SPARQL endpoint does but with {media_type} ('{begin}'); "
                "check the address"
            ) from error

    def _selected(self, content: bytes) -> pl.DataFrame:
        ox = pyoxigraph()
        solutions = ox.parse_query_results(content, ox.QueryResultsFormat.JSON)
        if isinstance(solutions, ox.QueryBoolean):
            raise ValueError("a yes or no")
        names = [variable.value for variable in solutions.variables]
        positions = find_columns(f"{self.account.source}: the query", names, True, self._options)
        columns = dict(zip(output_names(self._options), positions, strict=True))
        rows = list(solutions)
        whole = [row for row in rows if all(row[at] is not None for at in columns.values())]
        if len(whole) < len(rows):
            self._refuse_unbound(rows, columns)
        data = {name: [_term_text(row[at], name, ox) for row in whole] for name, at in columns.items()}
        self._digest = _digest_of([" ".join(row) for row in zip(*data.values(), strict=True)], self._page)
        return self._statements.facts_of_terms(pl.DataFrame(data, schema=dict.fromkeys(columns, pl.String)))

    def _refuse_unbound(self, rows: list[Any], columns: dict[str, int]) -> None:
        """Rows without one of the values, as OPTIONAL gives them."""
        for number, row in enumerate(rows, start=self._rows + 1):
            if empty := [name for name, at in columns.items() if row[at] is None]:
                example = f"row {number:,}: the {empty[0]} has no value"
                refuse_rows(f"empty {empty[0]}", 1, example, self.account, self._options)
                self.account.read += 1

    def _constructed(self, content: bytes, media_type: str) -> pl.DataFrame:
        ox = pyoxigraph()
        formats = {"text/turtle": ox.RdfFormat.TURTLE, "application/n-triples": ox.RdfFormat.N_TRIPLES}
        if media_type not in formats:
            raise ValueError(media_type)
        quads = ox.serialize(ox.parse(content, formats[media_type]), format=ox.RdfFormat.N_QUADS)
        self._digest = _digest_of(quads.decode().split("\n"), self._page)
        return self._statements.facts(quads)

    def _ask(self, query: str) -> tuple[bytes, str]:
        """The answer to a query and its media type, after some tries if the endpoint is busy or cut off."""
        for attempt in range(1, _TRIES + 1):
            try:
                return self._ask_once(query)
            except urllib.error.HTTPError as error:
                reason, retry_after = f"{error.code} {error.reason}", error.headers.get("Retry-After")
                if error.code not in _TRY_AGAIN:
                    raise DataError(
                        f"{self.account.source}: refuses the query ({reason}{_said(error)})"
                    ) from error
            except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
                cause = getattr(error, "reason", error)
                reason, retry_after = str(cause) or type(cause).__name__, None
            if attempt < _TRIES:
                time.sleep(_pause(attempt, retry_after))
        raise DataError(
            f"{self.account.source}: gives no answer after {_TRIES} tries ({reason}); check the address "
            "or try again later"
        )

    def _ask_once(self, query: str) -> tuple[bytes, str]:
        parameters = urllib.parse.urlencode({"query": query})
        joined = f"{self._url}{'&' if '?' in self._url else '?'}{parameters}"
        # Asking by address survives redirects, posting does not.
        fits = len(joined) <= _LONGEST_ADDRESS
        accept = _SELECTED if self._query.is_select else _CONSTRUCTED
        address, data = (joined, None) if fits else (self._url, parameters.encode("ascii"))
        request = web_request(address, {"Accept": accept}, self._authorization, data)
        until = time.monotonic() + _LONGEST_ANSWER
        with open_web(request, _SILENCE) as response:
            parts, size = [], 0
            while part := response.read1(1 << 20):
                parts.append(part)
                size += len(part)
                if size > _LARGEST_ANSWER or time.monotonic() > until:
                    raise DataError(
                        f"{self.account.source}: a page of the answer has no end within {_LARGEST_ANSWER >> 20} MB and "
                        f"{_LONGEST_ANSWER / 60:.0f} minutes; give the query a LIMIT"
                    )
            if response.length:  # read1 takes a body that was cut off for a whole one
                raise http.client.IncompleteRead(b"", response.length)
            return b"".join(parts), response.headers.get_content_type()


def _term_text(term: Any, column: str, ox: Any) -> str:
    """A term as N-Quads writes it; what is text where only names can be is a name."""
    is_name = column != "tail" and isinstance(term, ox.Literal)
    return term.value if is_name or column == TIME else str(term)


def _digest_of(rows: list[str], page: int) -> bytes:
    """What tells the rows of a page from those of another; nothing where pages may well be equal.

    Blank nodes are numbered anew in each answer: rows with them do not count. And where columns are left out, one row
    may fill many pages.
    """
    named = sorted(row for row in rows if not re.search(r"(?:^| )_:", row))
    if not named or (len(rows) == page and rows[0] == rows[-1]):
        return b""
    return hashlib.sha256("\n".join([str(len(rows)), *named]).encode()).digest()


def _said(error: urllib.error.HTTPError) -> str:
    """The beginning of what the endpoint says about an error."""
    try:
        text = " ".join(error.read(2000).decode("utf-8", "replace").split())
    except (OSError, http.client.HTTPException):
        text = ""
    return f": {short(text)}" if text else ""


def _pause(attempt: int, retry_after: str | None) -> float:
    """Seconds until the next try: what the endpoint asks for, else 1, 2, 4, 8."""
    if retry_after and retry_after.strip().isdecimal():
        return min(float(retry_after), _LONGEST_PAUSE)
    try:
        until = parsedate_to_datetime(retry_after or "").timestamp()
    except ValueError:
        return float(2 ** (attempt - 1))
    return min(max(until - time.time(), 0.0), _LONGEST_PAUSE)


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
        form = re.search(
            r"\b(SELECT|CONSTRUCT|ASK|DESCRIBE|INSERT|DELETE|LOAD|CLEAR|DROP)\b", outer, re.IGNORECASE
        )
        if text is None or not form or form[1].upper() not in ("SELECT", "CONSTRUCT"):
            raise DataError(
                "a SPARQL endpoint needs a query; give --query with a SELECT of three variables or a CONSTRUCT"
            )
        is_select = form[1].upper() == "SELECT"
        last = re.search(r"\bVALUES\b", outer, re.IGNORECASE)
        order = ""
        if not re.search(r"\bORDER\s+BY\b", outer, re.IGNORECASE):
            names = _selected_variables(plain, outer, form.end()) if is_select else []
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


def _selected_variables(plain: str, outer: str, start: int) -> list[str]:
    """Variables of a SELECT clause, those of `(... AS ?name)` included; none for `*`."""
    end = re.compile(r"\bWHERE\b|\bFROM\b|\{", re.IGNORECASE).search(outer, start)
    stop = end.start() if end else len(outer)
    aliases = re.finditer(r"\bAS\s+[?$](\w+)\s*\)", plain[start:stop], re.IGNORECASE)
    found = [*_VARIABLE.finditer(outer[start:stop]), *aliases]
    return [match[1] for match in sorted(found, key=lambda match: match.start())]
