"""Two real series with long memory, forecast and learned value by value, beside simple rivals.

    python examples/quickstart.py        # under 90 seconds on two cores

Log volatility of the S&P 500, a business day ahead: fitted on the first half, rolled through the second.
Hourly traffic on a motorway: fitted on 18 months, rolled on with a forecast of the day at every midnight.
No model is fitted again on the way. Prints a table and draws `quickstart.png` in the current folder.
"""

from pathlib import Path
from time import perf_counter

import matplotlib

matplotlib.use("Agg")

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fracts import FracForecaster, FracRidge, Mean, Naive, SeasonalNaive
from fracts.datasets import load_sp500_volatility, load_traffic_volume
from fracts.scores import coverage, mase, naive_scale, rmsse

DAY, WEEK = 24, 168  # hours
YEAR = 252  # trading days
SMOOTHING = 0.94  # of daily variances: RiskMetrics Technical Document (J.P. Morgan, 1996)
LEVEL = 90  # per cent
AUTUMN = slice("2011-06-27", "2011-12-30")  # what the picture shows of the volatility,
FORTNIGHT = slice("2018-06-11", "2018-06-24")  # and of the traffic
LAGS = np.arange(1, 501)
PICTURE = Path("quickstart.png")
INK, BLUE, ORANGE = "#333333", "#0072B2", "#D55E00"
STYLE = {
    "figure.figsize": (11.5, 6.6),
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


def models(horizon, naive):
    """The models of the table by name."""
    return {
        "FracForecaster": FracForecaster(horizon, random_state=0),
        "its linear path alone": FracForecaster(horizon, n_layers=0),
        "FracRidge": FracRidge(horizon),
        "naive": naive,
        "mean of the past": Mean(horizon),
    }


def roll(model, future):
    """Median and interval for every step, each made before its value came; microseconds an update."""
    forecasts, seconds = [], []
    for block in future.to_numpy().reshape(-1, model.horizon):
        forecasts.append(model.forecast(level=LEVEL))
        for value in block:
            start = perf_counter()
            model.learn_one(value)
            seconds.append(perf_counter() - start)
    table = pd.DataFrame(np.concatenate(forecasts), future.index, ["point", "lower", "upper"])
    return table, 1e6 * np.median(seconds)


def compare(title, history, future, models):
    """Fit and roll every model, printing a row each; all forecasts and RMSSE by name."""
    print(f"\n{title}: {len(history):,} steps to fit, {len(future):,} to roll")
    print(f"{'':23}{'MASE':>7}{'RMSSE':>8}{f'in {LEVEL} %':>9}{'fit':>9}{'update':>10}", flush=True)
    forecasts, errors = {}, {}
    for name, model in models.items():
        start = perf_counter()
        model.fit(history)
        fit = perf_counter() - start
        forecasts[name], update = roll(model, future)
        absolute = mase(future, forecasts[name].point, naive_scale(history))
        errors[name] = rmsse(future, forecasts[name].point, naive_scale(history, power=2))
        inside = 100 * coverage(future, forecasts[name].lower, forecasts[name].upper)
        row = f"{absolute:7.3f}{errors[name]:8.3f}{inside:7.1f} %{fit:7.1f} s{update:7.0f} µs"
        print(f"{name:23}{row}", flush=True)
    return forecasts, errors


def per_year(log_volatility):
    """Log of a day's standard deviation, as per cent a year."""
    return 100 * np.sqrt(YEAR) * np.exp(log_volatility)


def draw_forecasts(axes, series, forecasts):
    """What came as dots, what had been forecast as a line, the interval it was to lie in as a band."""
    stamps, point, lower, upper = forecasts.index, forecasts.point, forecasts.lower, forecasts.upper
    axes.fill_between(stamps, lower, upper, color=BLUE, alpha=0.2, linewidth=0, label=f"{LEVEL} % interval")
    axes.plot(stamps, point, color=BLUE, linewidth=1.3, label="forecast")
    axes.plot(stamps, series[stamps], ".", color=INK, markersize=3.5, label="what came")
    axes.margins(x=0.01)


def draw_memory(axes, model):
    """What a past step weighs in the next forecast."""
    weights = model.memory_kernel(LAGS)["weight"].to_numpy()
    axes.loglog(LAGS, 100 * weights, color=BLUE, linewidth=1.8, label="learned")
    exponential = (1 - SMOOTHING) * SMOOTHING ** (LAGS - 1)
    axes.loglog(LAGS, 100 * exponential, "--", color=INK, linewidth=1, label=f"smoothing, {SMOOTHING}")


def draw_errors(axes, errors):
    """RMSSE of every model, a marker for every series, the model's name above."""
    for marker, color, (series, of_model) in zip("os", (BLUE, ORANGE), errors.items(), strict=True):
        axes.plot(list(of_model.values()), range(len(of_model)), marker, color=color, label=series)
    for row, name in enumerate(of_model):
        axes.text(0, row - 0.22, name)
    axes.set(xlim=(0, None), ylim=(len(of_model) - 0.6, -0.7), yticks=[])
    axes.grid(axis="x", color=INK, alpha=0.1)
    axes.spines.left.set_visible(False)


volatility = load_sp500_volatility().asfreq("B")  # log of a day's standard deviation; holidays are NaN
half = len(volatility) // 2
daily = models(1, Naive(1))
next_day, daily_errors = compare(
    "S&P 500 log volatility, the next business day", volatility[:half], volatility[half:], daily
)

volume = load_traffic_volume()  # vehicles an hour; hours without a record are NaN
hourly = models(DAY, SeasonalNaive(DAY, season_length=WEEK))
next_hours, hourly_errors = compare(
    "Traffic volume, the next 24 hours", volume[:"2018-03-31"], volume["2018-04-01":], hourly
)

with plt.rc_context(STYLE):
    figure, ((top, right), (bottom, low)) = plt.subplots(2, 2, width_ratios=(2.3, 1))
    draw_forecasts(top, per_year(volatility), per_year(next_day["FracForecaster"][AUTUMN]))
    top.set(title="S&P 500 in 2011: volatility of the next day, % a year", yscale="log")
    top.set_yticks([5, 10, 20, 40, 80], ["5", "10", "20", "40", "80"])
    top.minorticks_off()
    top.xaxis.set(major_locator=mdates.MonthLocator(), major_formatter=mdates.DateFormatter("%B"))
    top.legend(ncols=3, loc="upper right")
    draw_forecasts(bottom, volume / 1000, next_hours["FracForecaster"][FORTNIGHT] / 1000)
    bottom.set(
        title="Interstate 94 in June 2018: traffic of the next day, 1,000 vehicles an hour", ylim=(0, None)
    )
    bottom.xaxis.set(
        major_locator=mdates.DayLocator(interval=2), major_formatter=mdates.DateFormatter("%a %d")
    )
    draw_memory(right, daily["FracForecaster"])
    right.set(title="Weight of a past day in the forecast, %", xlabel="days back", ylim=(1e-4, 40))
    right.xaxis.set_major_formatter("{x:g}")
    right.yaxis.set_major_formatter("{x:g}")
    right.legend(loc="lower left")
    draw_errors(low, {"volatility": daily_errors, "traffic": hourly_errors})
    low.set(title="RMSSE: error in typical steps of the series")
    low.legend(loc="center right")
    figure.savefig(PICTURE, dpi=150)
print(f"\nPicture: {PICTURE.resolve()}")
