"""Carbon dioxide in the air at Mauna Loa, Hawaii, weekly, 1958 to 2001.

2,284 weeks from 1958-03-29 to 2001-12-29, stamped on Saturdays, a full grid; 59 weeks have no value. Parts
per million by volume, weekly means of continuous measurement (Keeling and Whorf). Source and terms: DATA.md.
"""

import pandas as pd

from fracts.datasets.tables import read_table


def load_co2() -> "pd.Series[float]":
    """Parts per million, 2,284 weeks, 59 of them NaN; the index has frequency "W-SAT".

    Examples
    --------
    >>> load_co2().head(2)
    date
    1958-03-29    316.1
    1958-04-05    317.3
    Freq: W-SAT, Name: co2, dtype: float64
    """
    return read_table("co2_weekly", "date").asfreq("W-SAT")["co2"]
