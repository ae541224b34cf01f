"""Small series to try things on. Import as `fracts.datasets`."""

if __name__ != "fracts.datasets":
    raise ImportError(
        "This folder is `fracts.datasets`; imported from the repository root it hides "
        "Hugging Face's `datasets`. Start Python elsewhere, or with `python -P`."
    )

from fracts.autocovariance import (
    arfima_autocovariance,
    fgn_autocovariance,
    gegenbauer_autocovariance,
)
from fracts.datasets.co2 import load_co2
from fracts.datasets.ett import read_ett
from fracts.datasets.heart import load_heart_intervals
from fracts.datasets.m4 import read_m4
from fracts.datasets.parquet import read_parquet
from fracts.datasets.predictor import arfima_one_step, arfima_predictor
from fracts.datasets.probe import make_heavy_tail
from fracts.datasets.processes import make_arfima, make_fgn, make_gegenbauer
from fracts.datasets.sp500 import load_sp500_daily, load_sp500_volatility
from fracts.datasets.traffic import load_traffic_volume, load_traffic_weather
from fracts.datasets.tsf import read_tsf

__all__ = [
    "arfima_autocovariance",
    "arfima_one_step",
    "arfima_predictor",
    "fgn_autocovariance",
    "gegenbauer_autocovariance",
    "load_co2",
    "load_heart_intervals",
    "load_sp500_daily",
    "load_sp500_volatility",
    "load_traffic_volume",
    "load_traffic_weather",
    "make_arfima",
    "make_fgn",
    "make_gegenbauer",
    "make_heavy_tail",
    "read_ett",
    "read_m4",
    "read_parquet",
    "read_tsf",
]
