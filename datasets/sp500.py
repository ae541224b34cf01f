"""The S&P 500 index, daily, 1999 to 2018: returns without memory, volatility with long memory.

5,031 trading days from 1999-01-04 to 2018-12-31; holidays are not in the index, so it has no frequency.
Prices in index points, volume in shares. Source and terms: DATA.md.
"""

import numpy as np
import pandas as pd

from fracts.datasets.tables import read_table


def load_sp500_daily() -> pd.DataFrame:
    """5,031 trading days with columns open, high, low, close, adj_close, volume.

    `adj_close` equals `close` on every day: an index pays no dividends.

    Examples
    --------
    >>> load_sp500_daily()["close"].head(2)
    date
    1999-01-04    1228.099976
    1999-01-05    1244.780029
    Name: close, dtype: float64
    """
    return read_table("sp500_daily", "date")


def load_sp500_volatility() -> "pd.Series[float]":
    """5,031 values of log volatility: the logarithm of each day's standard deviation, from its range.

    log(sqrt(log(high / low)^2 / (4 log 2))), the estimate of Parkinson (1980), of the trading hours alone. No
    day of the table has high equal to low, so every value is finite and none was altered or left out.

    Examples
    --------
    >>> load_sp500_volatility().head(2).round(4)
    date
    1999-01-04   -4.2363
    1999-01-05   -4.7395
    Name: log_volatility, dtype: float64
    """
    prices = load_sp500_daily()
    reach = np.log(prices["high"] / prices["low"])
    return pd.Series(0.5 * np.log(reach**2 / (4 * np.log(2))), name="log_volatility")
