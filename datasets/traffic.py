"""Westbound traffic on Interstate 94 between Minneapolis and St Paul, hourly, with the weather.

17,520 hours from 2016-10-01 00:00 to 2018-09-30 23:00, a full grid; 104 hours have no record and are NaN in
every column. The stamps are wall-clock time without a zone, as the rush hours show, which keep their place
through the year: the hour that summer time skips (2017-03-12 02:00, 2018-03-11 02:00) is among the missing
ones, and of the hour that it repeats (2016-11-06 01:00, 2017-11-05 01:00) one of the two counts is there.
Source and terms: DATA.md.
"""

import pandas as pd

from fracts.datasets.tables import read_table


def load_traffic_volume() -> "pd.Series[float]":
    """Vehicles per hour, 17,520 hours, 104 of them NaN; the index has frequency "h".

    Examples
    --------
    >>> load_traffic_volume().head(2)
    datetime
    2016-10-01 00:00:00    1195.0
    2016-10-01 01:00:00     776.0
    Freq: h, Name: traffic_volume, dtype: float64
    """
    return _load_traffic()["traffic_volume"]


def load_traffic_weather() -> pd.DataFrame:
    """The weather of the same hours: temp, rain_1h, snow_1h, clouds_all, weather_main.

    Kelvin, millimetres in the hour, millimetres in the hour (0 throughout), per cent of the sky, and one
    word. Measured, not forecast: a model may use it up to now only.

    Examples
    --------
    >>> load_traffic_weather().head(2)
                           temp  rain_1h  snow_1h  clouds_all weather_main
    datetime
    2016-10-01 00:00:00  286.22      0.0      0.0        20.0       Clouds
    2016-10-01 01:00:00  285.60      0.0      0.0        20.0       Clouds
    """
    return _load_traffic()[["temp", "rain_1h", "snow_1h", "clouds_all", "weather_main"]]


def _load_traffic() -> pd.DataFrame:
    return read_table("traffic_volume_hourly", "datetime").asfreq("h")
