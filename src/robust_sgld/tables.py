"""Numeric tables out of CSV and Parquet files; what cannot be used is refused in a sentence that names it."""

from __future__ import annotations

import csv
import difflib
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robust_sgld.checks import InvalidInput

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MAX_BYTES = 2 * 2**30
"""The largest file that is read: it is held in memory as a whole."""
PARQUET = (".parquet", ".pq")


def read_table(
    path: str | Path, target: str, features: Sequence[str] | None = None, separator: str = ","
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Rows (n, m) of float64 and the names of their columns, features first and the target last.

    `features` are all columns but the target unless they are named. Parquet is known by its ending (.parquet, .pq),
    everything else is read as CSV with a header line. Columns must be numbers (or true and false, as 1 and 0), all of
    them there and finite, and not constant.
    """
    path = Path(path).expanduser()
    frame = _parquet(path) if path.suffix.lower() in PARQUET else _csv(path, separator)
    names = [str(name) for name in frame.columns]
    frame.columns = names
    if not len(frame):
        raise InvalidInput(f"{path} has a header and no rows.")
    wanted = _features(path, names, target, features)
    columns = [_numbers(path, frame[name]) for name in (*wanted, target)]
    return np.column_stack(columns), (*wanted, target)


def _usable(path: Path) -> None:
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a file.")
    if not path.exists():
        raise InvalidInput(f"there is no file {path} (a relative path starts at {Path.cwd()}).")
    size = path.stat().st_size
    if size == 0:
        raise InvalidInput(f"{path} is empty.")
    if size > MAX_BYTES:
        raise InvalidInput(
            f"{path} has {size / 2**30:.1f} GiB and is read into memory as a whole, at most {MAX_BYTES / 2**30:g} GiB; "
            "a sample of its rows would do."
        )


def _csv(path: Path, separator: str) -> DataFrame:
    import pandas

    _usable(path)
    if not isinstance(separator, str) or len(separator) != 1:
        raise InvalidInput(f"separator must be one character, got {separator!r}.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file, delimiter=separator), [])
        _distinct(path, header)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # rows longer than the header
            frame = pandas.read_csv(
                path, sep=separator, index_col=False, encoding="utf-8-sig", skipinitialspace=True, low_memory=False
            )
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"{path} is not a CSV file: it is not text in UTF-8.") from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning, pandas.errors.EmptyDataError) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ").splitlines()[0].rstrip(".")
        raise InvalidInput(f"{path} is not a CSV file with one header line: {reason}.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from None
    if frame.shape[1] == 1:
        other = next((s for s in ";\t|" if s in header[0]), None)
        hint = f"; separator={other!r} may be right" if other else ""
        raise InvalidInput(f"{path} has one column only, {header[0]!r}, where a target and a feature are needed{hint}.")
    return frame


def _parquet(path: Path) -> DataFrame:
    import pandas
    from pyarrow import ArrowException, parquet

    _usable(path)
    try:
        _distinct(path, parquet.read_schema(path).names)
        return pandas.read_parquet(path)
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is not a Parquet file, or it is damaged.") from None


def _distinct(path: Path, header: Sequence[str]) -> None:
    names = [str(name).strip() for name in header]
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidInput(f"{path} has more than one column {repeated[0]!r}; rename or remove all but one.")
    if "" in names:
        raise InvalidInput(f"{path}: column {names.index('') + 1} has no name in the header.")


def _features(path: Path, names: list[str], target: str, features: Sequence[str] | None) -> list[str]:
    if isinstance(features, str) or (features is not None and not all(isinstance(f, str) for f in features)):
        raise InvalidInput(f"features must be a list of column names, got {features!r}.")
    wanted = [name for name in names if name != target] if features is None else list(features)
    for name in (target, *wanted):
        if name not in names:
            close = difflib.get_close_matches(str(name), names, 1)
            known = ", ".join(repr(n) for n in names[:20]) + (", …" if len(names) > 20 else "")
            guess = f"; did you mean {close[0]!r}?" if close else ""
            raise InvalidInput(f"{path} has no column {name!r}: its columns are {known}{guess}.".replace("?.", "?"))
    if target in wanted:
        raise InvalidInput(f"the target {target!r} of {path} cannot be a feature too.")
    if repeated := [name for name, count in Counter(wanted).items() if count > 1]:
        raise InvalidInput(f"features names {repeated[0]!r} twice.")
    if not wanted:
        raise InvalidInput(f"{path} has no column but the target {target!r}; at least one feature is needed.")
    return wanted


def _numbers(path: Path, column: Series[Any]) -> np.ndarray:
    """One column as float64; refuses in the order text, missing, not finite, constant."""
    import pandas

    where = f"{path}: column {column.name!r}"
    numbers = pandas.to_numeric(column, errors="coerce")
    present = column.notna().to_numpy()
    dates = pandas.api.types.is_datetime64_any_dtype(column.dtype)
    if dates or pandas.api.types.is_complex_dtype(column.dtype) or (text := numbers.isna().to_numpy() & present).any():
        row = 0 if dates or pandas.api.types.is_complex_dtype(column.dtype) else int(text.argmax())
        raise InvalidInput(
            f"{where} is not numeric (row {row + 1} is {str(column.iloc[row])!r}); encode it as numbers, or list the "
            "other columns in features."
        )
    if not present.all():
        count, first = int((~present).sum()), int((~present).argmax()) + 1
        raise InvalidInput(
            f"{where} has {count} missing value{'s' * (count != 1)}, the first in row {first}; fill or drop them first."
        )
    values = numbers.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).argmax())
        raise InvalidInput(f"{where} has a value that is not finite ({values[row]}) in row {row + 1}.")
    if values.min() == values.max():
        raise InvalidInput(f"{where} is constant ({values[0]:g}); leave it out, it says nothing.")
    return values
