"""Do covariates help: weather, hour and kind of day, on road traffic and on shared bicycles?

    FRACTS_DATA=folder python tests/benchmarks/covariates.py [--linear]

`traffic_volume_hourly.csv.gz` and `bike_sharing_hourly.csv.gz` in the folder. The next 24 hours from every
midnight, weights of the training hours throughout. Covariates are chosen by the MAE on the validation hours,
each model for itself; the other figures are of the test hours. Days off are the federal holidays of pandas'
calendar and weekends for the traffic, `workingday` for the bicycles. Weather "ahead" is the weather measured
then, as though it had been forecast without error; "up to now" is what could have been known.
With `--linear` only `FracRidge`.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.tseries.holiday import USFederalHolidayCalendar
from record import record

from fracts import FracForecaster, FracRidge

HORIZON = 24
FOLDER = Path(os.environ["FRACTS_DATA"])
MODELS = {"FracRidge": FracRidge, "FracForecaster": lambda *a, **o: FracForecaster(*a, random_state=0, **o)}


def traffic():
    """Series, weather, day off, and the first hours of validation, of test, and after it."""
    table = pd.read_csv(FOLDER / "traffic_volume_hourly.csv.gz", index_col=0, parse_dates=True).asfreq("h")
    weather = table[["temp", "rain_1h", "clouds_all", "weather_main"]].ffill()  # 104 hours have no record
    weather = weather.astype({"weather_main": "category"})  # "Smoke" comes for the first time in the test
    days = table.index.normalize()
    holidays = USFederalHolidayCalendar().holidays(days[0], days[-1])
    off = days.isin(holidays) | (table.index.day_of_week >= 5)
    return table["traffic_volume"], weather, off, ("2018-01-01", "2018-04-01", "2018-09-30")


def bicycles():
    """As `traffic`."""
    table = pd.read_csv(FOLDER / "bike_sharing_hourly.csv.gz", index_col=0, parse_dates=True).asfreq("h")
    weather = table[["temp", "hum", "windspeed", "weather"]]
    return table["users"], weather, table["workingday"] == 0, ("2012-04-01", "2012-07-01", "2012-12-31")


def hours(index, off):
    """Hour of the day, apart for days off: a category of 48."""
    levels = [f"{kind} {hour}" for kind in ("off", "at work") for hour in range(24)]
    kinds = np.where(off, "off ", "at work ")
    return pd.DataFrame({"hours": pd.Categorical(kinds + index.hour.astype(str), levels)}, index)


def settings(weather, calendar):
    """Name: covariates, and those known up to now alone."""
    past = tuple(weather.columns)
    return {
        "none": (None, ()),
        "weather up to now": (weather, past),
        "hours": (calendar, ()),
        "hours, weather up to now": (calendar.join(weather), past),
        "hours, weather ahead": (calendar.join(weather), ()),
    }


def rolled(model, y, X, first, last):
    """Forecasts (days, 24, 3), point and 90 % interval, from every midnight, and the truth (days, 24)."""
    said, truth = [], []
    for day in pd.date_range(first, last, inclusive="left"):
        following = y[day : day + pd.Timedelta(hours=HORIZON - 1)]
        said.append(model.forecast(X=X, level=90))
        truth.append(following.to_numpy())
        model.update(following, X)
    return np.array(said), np.array(truth)


def figures(said, truth, prefix):
    """MAE and RMSE of the median, and the share of values inside the interval."""
    error, known = said[..., 0] - truth, ~np.isnan(truth)
    inside = (said[..., 1] <= truth) & (truth <= said[..., 2])
    return {
        f"{prefix}_mae": np.nanmean(np.abs(error)),
        f"{prefix}_rmse": np.sqrt(np.nanmean(error**2)),
        f"{prefix}_in_90": inside[known].mean(),
    }


def benchmark(data, load):
    """A row for each model and setting."""
    y, weather, off, (validation, test, end) = load()
    tried = settings(weather, hours(y.index, off))
    for model in MODELS if "--linear" not in sys.argv else ["FracRidge"]:
        for setting, (X, past_only) in tried.items():
            start = time.perf_counter()
            history = y[: pd.Timestamp(validation) - pd.Timedelta(hours=1)]
            fitted = MODELS[model](HORIZON, past_only=past_only).fit(history, X)
            seconds = time.perf_counter() - start
            row = {"data": data, "model": model, "covariates": setting, "fit_seconds": round(seconds, 1)}
            row |= figures(*rolled(fitted, y, X, validation, test), "validation")
            row |= figures(*rolled(fitted, y, X, test, end), "test")
            yield row


rows = []
print(f"{'':<50} {'validation':>10} {'test':>6}")
columns = "MAE", "MAE", "RMSE", "in 90 %", "fit"
print(
    f"{'data':<9} {'model':<15} {'covariates':<24} {{:>10}} {{:>6}} {{:>6}} {{:>8}} {{:>7}}".format(*columns)
)
for data, load in {"traffic": traffic, "bicycles": bicycles}.items():
    for row in benchmark(data, load):
        rows.append(row)
        shown = f"{row['data']:<9} {row['model']:<15} {row['covariates']:<24} {row['validation_mae']:>10.1f}"
        shown += f" {row['test_mae']:>6.1f} {row['test_rmse']:>6.1f} {row['test_in_90']:>8.1%}"
        print(f"{shown} {row['fit_seconds']:>5.1f} s", flush=True)
record("covariates", rows)

print("\nTest MAE without covariates, and with those of the least validation MAE:")
worse = []
for (data, model), part in pd.DataFrame(rows).groupby(["data", "model"], sort=False):
    plain = part.set_index("covariates").loc["none"]
    best = part.loc[part["validation_mae"].idxmin()]
    gain = 1 - best["test_mae"] / plain["test_mae"]
    print(
        f"{data:<9} {model:<15} {plain['test_mae']:>6.1f} {best['test_mae']:>6.1f} ({gain:.1%} less: "
        f"{best['covariates']})"
    )
    worse += [(data, model)] if gain <= 0 else []
if worse:
    raise SystemExit(f"the covariates chosen do not help on the test hours: {worse}")
