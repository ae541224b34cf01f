"""Data sets of accuracy.py: where they are read, how they are cut, what others are known to reach on them.

What a model is told of a set stands here: the horizon and the lengths of the seasons. `FRACTS_DATA`
names the folder. Needs numpy and pandas alone, so that a peer in an environment of its own reads the same.

Published rows: the public tables of PatchTST, LTSF-Linear, TiDE, N-HiTS and iTransformer (ETTh1); the
organisers' table of the M4 competition; Godahewa et al., 2021, Monash time series forecasting archive (river
and M3). Rows of the realised volatility were computed on the same days (Corsi's HAR by least squares;
ARFIMA(1,d,1) by Whittle's likelihood).
"""

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

FITTED = {"validation": 0.55, "test": 0.75}  # shares of a single series, rolled on from there
ENDS = {"validation": 0.75, "test": 1.0}
N_ORIGINS = 400


@dataclass(frozen=True)
class Task:
    """A data set and how a model is tried on it.

    Attributes
    ----------
    kind : the protocol of accuracy_protocols.py.
    read : returns the values, as the protocol takes them.
    horizons : of the models, each fitted for itself.
    season_lengths : in steps.
    published : figures of others, {name: {figure: value}}.
    asked : what is asked of our models, {figure: the most it may be}.
    """

    kind: str
    read: object
    horizons: tuple
    season_lengths: tuple = ()
    published: dict = field(default_factory=dict)
    asked: dict = field(default_factory=dict)


def _table(name):
    return pd.read_csv(Path(os.environ["FRACTS_DATA"]) / name)


def values(name, column, log=False):
    """(rows,) of a single series, NaN where missing."""
    read = _table(name)[column].to_numpy(np.float64)
    return np.log(read) if log else read


def etth1():
    """(rows, channels), standardised by the training hours."""
    table = _table("ETTh1.csv.gz").drop(columns="date").to_numpy(np.float64)[:14400]
    train = table[:8640]
    return (table - train.mean(0)) / train.std(0)


def volatility():
    """Log realised variance (days,), and the return of the day from open to close."""
    table = _table("sp500_rv5_daily.csv.gz")
    return np.log(table["rv5"].to_numpy()), table["ret_oc"].to_numpy()


def panel(name, group=None):
    """Long frames (unique_id, ds, y): the training part and what came."""
    table = _table(name)
    if group:
        table = table[table["freq"] == group].drop(columns="freq")
    # Of a competition only the order of the values is told.
    table["ds"] = table.groupby("unique_id", sort=False).cumcount()
    train = table["split"] == "train"
    columns = ["unique_id", "ds", "y"]
    return table.loc[train, columns].reset_index(drop=True), table.loc[~train, columns].reset_index(drop=True)


def origins(n_rows, part, horizon):
    """Rows after which a rolling forecast is made, the first the last one fitted."""
    first, end = round(FITTED[part] * n_rows) - 1, round(ENDS[part] * n_rows)
    return np.unique(np.linspace(first, end - 1 - horizon, N_ORIGINS).astype(int))


def _etth1_rows(by_model):
    keys = [f"{error} {h}" for h in (96, 192, 336, 720) for error in ("MSE", "MAE")]
    rows = {name: dict(zip(keys, figures, strict=True)) for name, figures in by_model.items()}
    for row in rows.values():
        for error in ("MSE", "MAE"):
            row[f"{error} mean"] = np.mean([row[key] for key in keys if key.startswith(error)])
    return rows


ROLLING = {
    "nile_minima": Task("rolling", partial(values, "nile_minima.csv", "level"), (24,)),
    "ethernet_traffic": Task("rolling", partial(values, "ethernet_traffic.csv", "value"), (24,)),
    "video_vbr": Task("rolling", partial(values, "video_vbr.csv", "value"), (24,)),
    "nhemi_temperature": Task(
        "rolling", partial(values, "nhemi_temperature_monthly.csv", "anomaly"), (24,), (12,)
    ),
    "taylor": Task("rolling", partial(values, "taylor_half_hourly.csv", "demand_mw"), (24,), (48, 336)),
    "traffic_volume": Task(
        "rolling", partial(values, "traffic_volume_hourly.csv.gz", "traffic_volume"), (24,), (24, 168)
    ),
    "bike_sharing": Task("rolling", partial(values, "bike_sharing_hourly.csv.gz", "users"), (24,), (24, 168)),
    "melbourne_temperature": Task(
        "rolling", partial(values, "melbourne_min_temp_daily.csv", "min_temp_c"), (24,), (365,)
    ),
    "vix": Task("rolling", partial(values, "vix_daily.csv", "vix_daily"), (24,)),
}

TASKS = {
    "etth1": Task(
        "channels",
        etth1,
        (96, 192, 336, 720),
        (24, 168),
        _etth1_rows(
            {
                "PatchTST/64": (0.370, 0.400, 0.413, 0.429, 0.422, 0.440, 0.447, 0.468),
                "NLinear": (0.374, 0.394, 0.408, 0.415, 0.429, 0.427, 0.440, 0.453),
                "DLinear": (0.375, 0.399, 0.405, 0.416, 0.439, 0.443, 0.472, 0.490),
                "TiDE": (0.375, 0.398, 0.412, 0.422, 0.435, 0.433, 0.454, 0.465),
                "N-HiTS": (0.378, 0.393, 0.427, 0.436, 0.458, 0.484, 0.561, 0.501),
                "iTransformer": (0.386, 0.405, 0.441, 0.436, 0.487, 0.458, 0.503, 0.491),
            }
        ),
        {"MSE mean": 0.400, "MAE mean": 0.420},
    ),
    "volatility": Task(
        "volatility",
        volatility,
        (22,),
        (),
        {
            "ARFIMA(1,d,1)": {"RMSE 1": 0.6520, "RMSE 5": 0.5720, "RMSE 22": 0.6068},
            "HAR": {"RMSE 1": 0.6574, "RMSE 5": 0.5789, "RMSE 22": 0.6177},
            "last value": {"RMSE 1": 0.7280, "RMSE 5": 0.7137, "RMSE 22": 0.8328},
        },
        {"RMSE 1": 0.650, "RMSE 5": 0.570, "RMSE 22": 0.606},
    ),
    "saugeen": Task(
        "tail",
        partial(values, "saugeen_river_flow_daily.csv.gz", "flow"),
        (30,),
        (365,),
        {
            "CatBoost": {"MASE": 1.411},
            "Theta": {"MASE": 1.425},
            "SES": {"MASE": 1.426},
            "WaveNet": {"MASE": 1.471},
            "TBATS": {"MASE": 1.477},
            "ARIMA": {"MASE": 1.485},
            "DeepAR": {"MASE": 1.560},
        },
        {"MASE": 1.40},
    ),
    "m4_hourly": Task(
        "panel",
        partial(panel, "m4_hourly.csv.gz"),
        (48,),
        (24, 168),
        {
            "Doornik": {"sMAPE": 8.913, "MASE": 0.801, "OWA": 0.410},
            "Smyl, ES-RNN (winner)": {"sMAPE": 9.328, "MASE": 0.893, "OWA": 0.440},
            "ProLogistica": {"sMAPE": 9.611, "MASE": 0.873, "OWA": 0.444},
            "FFORMA": {"sMAPE": 11.506, "MASE": 0.819, "OWA": 0.484},
            "seasonal Naive": {"sMAPE": 13.912, "MASE": 1.193, "OWA": 0.627},
            "Theta": {"sMAPE": 18.138, "MASE": 2.455, "OWA": 1.006},
            "Naive2": {"sMAPE": 18.383, "MASE": 2.395, "OWA": 1.0},
        },
        {"OWA": 0.42},
    ),
    "m3_monthly": Task(
        "panel",
        partial(panel, "m3.csv.gz", "monthly"),
        (18,),
        (12,),
        {
            "TBATS": {"MASE": 0.861},
            "Theta": {"MASE": 0.864},
            "ETS": {"MASE": 0.865},
            "ARIMA": {"MASE": 0.873},
            "N-BEATS": {"MASE": 0.934},
        },
        {"MASE": 0.85},
    ),
    "m3_quarterly": Task(
        "panel",
        partial(panel, "m3.csv.gz", "quarterly"),
        (8,),
        (4,),
        {
            "Theta": {"MASE": 1.117},
            "ETS": {"MASE": 1.170},
            "N-BEATS": {"MASE": 1.182},
            "ARIMA": {"MASE": 1.240},
            "TBATS": {"MASE": 1.256},
        },
        {"MASE": 1.10},
    ),
    **ROLLING,
}
