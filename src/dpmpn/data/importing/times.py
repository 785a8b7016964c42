"""Times of facts, however they are written, as numbers that sort."""

import numpy as np
import polars as pl

from dpmpn.errors import DataError

_DATES = ("%Y-%m-%d", "%Y-%m", "%Y")
_LOCAL_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
_ZONED_TIMES = tuple(form + "%#z" for form in _LOCAL_TIMES)
_MOMENT = pl.Datetime("us")
_ADVICE = "write a number, a year, or an ISO date such as 2020-05-17 or 2020-05-17T10:30:00Z"


def parse_times(times: pl.Series) -> np.ndarray:
    """Times as numbers: numbers as they are, ISO dates and times as microseconds since 1970, UTC where none is named.

    Text is read as whole numbers (years, seconds), else as numbers, else as dates; "2020" or "2020-05" among dates is
    the first moment of that year or month.
    """
    if times.dtype == pl.String:
        return _parse_text(times.str.strip_chars())
    if times.dtype in (pl.Date, pl.Datetime):
        return _complete(times, times.cast(_MOMENT).to_physical())
    if not times.dtype.is_numeric():
        raise DataError(f"times of type {times.dtype} cannot be used; {_ADVICE}")
    return _complete(times, _finite(times))


def _parse_text(times: pl.Series) -> np.ndarray:
    numbers = _finite(times.cast(pl.Float64, strict=False))
    for read in (times.cast(pl.Int64, strict=False), numbers):
        if not read.null_count():
            return read.to_numpy()
    moments = _parse_dates(times).to_physical()
    # Name what is neither number nor date, if anything is; otherwise the two are mixed.
    neither = moments.is_null() & numbers.is_null()
    return _complete(times, moments.set(~neither, 0) if neither.any() else moments)


def _parse_dates(times: pl.Series) -> pl.Series:
    """Moments in UTC, null for what is no date."""
    text = pl.col("time").str.replace(" ", "T", literal=True)
    readings = [
        *(text.str.to_date(form, strict=False).cast(_MOMENT) for form in _DATES),
        *(text.str.to_datetime(form, strict=False, time_unit="us") for form in _LOCAL_TIMES),
        *(
            text.str.to_datetime(form, strict=False, time_unit="us").dt.replace_time_zone(None)
            for form in _ZONED_TIMES
        ),
    ]
    return times.alias("time").to_frame().select(pl.coalesce(readings)).to_series()


def _finite(numbers: pl.Series) -> pl.Series:
    """Numbers with null for those that are infinite or not a number."""
    return numbers.set(~numbers.is_finite(), None) if numbers.dtype.is_float() else numbers


def _complete(times: pl.Series, read: pl.Series) -> np.ndarray:
    """The numbers; or an error that names the first time that is none."""
    if read.null_count():
        row = int(read.is_null().arg_true()[0])
        what = "is missing" if times[row] is None else f"'{times[row]}' cannot be read"
        raise DataError(f"the time of fact {row + 1:,} {what}; {_ADVICE}")
    return read.to_numpy()
