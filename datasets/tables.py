"""The packed tables that lie beside this file; DATA.md has their sources, terms and checksums."""

from importlib.resources import files

import pandas as pd


def read_table(name: str, index: str, *, dates: bool = True) -> pd.DataFrame:
    """The table `name`.csv.gz, with the column `index` as its index, read as dates where they are."""
    with (files("fracts.datasets") / f"{name}.csv.gz").open("rb") as packed:
        return pd.read_csv(
            packed, compression="gzip", index_col=index, parse_dates=[index] if dates else False
        )
