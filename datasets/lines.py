"""Text files line by line: opened whether packed or not, and what is wrong with them told by line."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd


def read_lines(path: str | Path, encoding: str = "utf-8-sig") -> Iterator[tuple[int, str]]:
    """Number, from 1, and text of every line that is not blank, of a file that may be packed as `.gz`."""
    path = Path(path)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode(encoding).strip("\r\n")
            except UnicodeDecodeError as undecoded:
                raise at_line(path, number, f"byte {undecoded.start} is no {encoding} text") from undecoded
            if text.strip():
                yield number, text


def long_frame(
    names: Sequence[str], stamps: Sequence[pd.Index], values: Sequence[list[float]]
) -> pd.DataFrame:
    """unique_id, ds, y of series, each with a name, stamps and values."""
    return pd.DataFrame(
        {
            "unique_id": np.repeat(np.array(names, dtype=object), [len(y) for y in values]),
            "ds": stamps[0].append(list(stamps[1:])),
            "y": np.concatenate([np.array(y, dtype=float) for y in values]),
        }
    ).astype({"unique_id": str})


def at_line(path: str | Path, number: int, told: str) -> ValueError:
    """The error that the line `number` of a file is wrong, and how."""
    return ValueError(f"{Path(path).name}, line {number}: {told}. Mend the file, or leave the line out.")


def number_in(path: str | Path, line: int, text: str, where: str) -> float:
    """The number that `text` writes; ValueError by line where it is none."""
    try:
        return float(text)
    except ValueError:
        raise at_line(path, line, f"{where} is {text!r}, which is no number") from None
