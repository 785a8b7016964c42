"""Facts a query selects from a database, through SQLAlchemy, without ever writing to it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import polars as pl

from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.columns import RowSource, find_columns
from dpmpn.errors import DataError

_BATCH = 50_000  # rows
_PATIENCE = 10  # seconds to wait for a database server
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_READING = ("select", "with", "values", "table")


class SqlSource(RowSource):
    """Facts of a SELECT; rows are streamed, whatever their number."""

    def __init__(self, url: str, options: ReadOptions) -> None:
        self._sqlalchemy = _sqlalchemy()
        self._url = _parsed(self._sqlalchemy, url)
        super().__init__(self._url.render_as_string(hide_password=True), options)

    def _batches(self) -> Iterator[pl.DataFrame]:
        with self._errors_as_sentences():
            engine = self._engine()
            try:
                query = self._query(engine)
                with engine.connect() as connection:
                    # Without parameters the driver leaves % and : in the query alone.
                    streaming = connection.execution_options(
                        stream_results=True, max_row_buffer=_BATCH, no_parameters=True
                    )
                    result = streaming.exec_driver_sql(query)
                    if not result.returns_rows:
                        raise DataError(f"{self.account.source}: the query gives no rows; give a SELECT")
                    names = list(result.keys())
                    positions = find_columns(f"{self.account.source}: the query", names, True, self._options)
                    for rows in result.partitions(_BATCH):
                        yield self._facts(rows, positions)
            finally:
                engine.dispose()

    def _engine(self) -> Any:
        from sqlalchemy.pool import NullPool

        backend = self._url.get_backend_name()
        if backend == "sqlite":
            path = _sqlite_path(self._url)
            return self._sqlalchemy.create_engine(
                "sqlite://", creator=lambda: _connect_sqlite(path), poolclass=NullPool
            )
        if backend != "postgresql":
            return self._sqlalchemy.create_engine(self._url, poolclass=NullPool)
        arguments = {} if "connect_timeout" in self._url.query else {"connect_timeout": _PATIENCE}
        engine = self._sqlalchemy.create_engine(self._url, poolclass=NullPool, connect_args=arguments)
        return engine.execution_options(postgresql_readonly=True)

    def _query(self, engine: Any) -> str:
        query = self._options.query
        if query is None:
            raise DataError(
                f"{self.account.source}: needs a query; give --query 'SELECT head, relation, tail FROM ...' "
                f"({_tables(self._sqlalchemy.inspect(engine))})"
            )
        words = _COMMENT.sub(" ", query).lstrip("( \t\r\n").split(None, 1)
        if not words or words[0].lower() not in _READING:
            raise DataError(
                f"{self.account.source}: the query is not a SELECT; facts are read, nothing is changed"
            )
        return query

    @contextmanager
    def _errors_as_sentences(self) -> Iterator[None]:
        """What SQLAlchemy and the drivers raise, as one sentence without the password."""
        from sqlalchemy import exc

        try:
            yield
        except exc.NoSuchModuleError as error:
            name = self._url.drivername
            raise DataError(
                f"{self.account.source}: there is no database driver '{name}'; check the URL"
            ) from error
        except ImportError as error:
            raise DataError(
                f"{self.account.source}: needs the Python package '{error.name}'; install it with pip"
            ) from error
        except exc.DBAPIError as error:
            raise DataError(
                f"{self.account.source}: the database says: {self._first_line(error.orig)}"
            ) from error
        except exc.SQLAlchemyError as error:
            raise DataError(f"{self.account.source}: cannot be read: {self._first_line(error)}") from error

    def _first_line(self, error: BaseException | None) -> str:
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        password = self._url.password
        return text.replace(str(password), "***") if password else text


def _sqlalchemy() -> ModuleType:
    try:
        import sqlalchemy
    except ImportError as error:
        raise DataError("reading a database needs the extra 'sql': pip install 'dpmpn[sql]'") from error
    return sqlalchemy


def _parsed(sqlalchemy: ModuleType, url: str) -> Any:
    try:
        parsed = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        # The text may hold a password: it is not repeated.
        raise DataError(
            "the address of the database is not a connection URL; write it as postgresql://user@host/database or "
            "sqlite:///file.db"
        ) from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed


def _sqlite_path(url: Any) -> Path:
    name = url.database or ""
    if name in ("", ":memory:"):
        raise DataError(
            f"{url}: names no file; write sqlite:///file.db, or sqlite:////folder/file.db from the root"
        )
    path = Path(name)
    if not path.is_file():
        raise DataError(f"{path}: no such database file; check the path")
    return path


def _connect_sqlite(path: Path) -> Any:
    """A connection that cannot write."""
    import sqlite3

    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    connection.execute("PRAGMA query_only = ON")
    connection.text_factory = _text_or_bytes
    return connection


def _text_or_bytes(content: bytes) -> str | bytes:
    """A text of SQLite, which may hold any bytes; what is not UTF-8 is a matter of its row."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _tables(inspector: Any) -> str:
    names = sorted({*inspector.get_table_names(), *inspector.get_view_names()})
    if not names:
        return "the database has no tables"
    return "tables: " + ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
