"""What a model remembers: the weight of the past in its forecast, and the exponent that it falls with.

    python examples/memory.py        # a few seconds

Three models: of log volatility of the S&P 500, of intervals between heart beats, and of two simulated series
whose memory is known. Prints the exponents, read from the weights, beside estimates on the series themselves,
and draws `memory.png` in the current folder.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd

from fracts import FracRidge
from fracts.datasets import load_heart_intervals, load_sp500_volatility, make_arfima
from fracts.memory import local_whittle
from fracts.plots import plot_memory_kernel, plot_memory_spectrum

PICTURE = Path("memory.png")
STYLE = {
    "figure.constrained_layout.use": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9.5,
}

volatility = load_sp500_volatility().asfreq("B")  # log of a day's standard deviation; holidays are NaN
heart = load_heart_intervals()
simulated = pd.DataFrame({f"d is {d}": make_arfima(8192, d, random_state=1) for d in (0.2, 0.45)})

models = {
    "S&P 500 log volatility, by business day": FracRidge(1).fit(volatility),
    "Intervals between heart beats": FracRidge(1).fit(heart),
    "Simulated, each with weights of its own": FracRidge(1, pooled=False).fit(simulated),
}

print(f"{'':24}{'from the weights':>18}{'local Whittle':>18}")
series = {"volatility": volatility, "heart beats": heart, **simulated}
estimates = [model.memory_exponent(name) for model in models.values() for name in model.series_ids_]
for (name, y), found in zip(series.items(), estimates, strict=True):
    whittle = local_whittle(y.dropna())
    pair = [f"{e.d:.3f} ± {e.standard_error:.3f}" for e in (found, whittle)]
    print(f"{name:24}{pair[0]:>18}{pair[1]:>18}")

with plt.rc_context(STYLE):
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.5))
    for (title, model), (kernel, spectrum) in zip(models.items(), axes.T, strict=True):
        plot_memory_kernel(model, ax=kernel).set_title(title)
        plot_memory_spectrum(model, ax=spectrum)
    figure.savefig(PICTURE, dpi=110)
print(f"\nPicture: {PICTURE.resolve()}")
