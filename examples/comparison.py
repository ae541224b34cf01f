"""Compare five forecasters of road traffic, day after day for half a year, and draw the picture.

    python examples/comparison.py        # under a minute on a laptop CPU

Each says the next 24 hours from every midnight. Prints errors, coverage of the 80 % interval and the test of
Diebold and Mariano against the best; writes `comparison.png` into the current folder.
"""

import matplotlib.pyplot as plt
import pandas as pd

from fracts import Ensemble, FracRidge, SeasonalNaive, Theta, compare
from fracts.datasets import load_traffic_volume
from fracts.plots import plot_comparison

DAY, WEEK = 24, 168  # hours

volume = load_traffic_volume()  # vehicles per hour
ridge, week, theta = FracRidge(DAY), SeasonalNaive(DAY, season_length=WEEK), Theta(DAY, season_length=WEEK)
models = {
    "FracRidge": ridge,
    "same hour last week": week,
    "Theta": theta,
    "mean of three": Ensemble(DAY, [ridge, week, theta]),
    "weighted mean": Ensemble(DAY, [ridge, week, theta], how="weighted"),
}
found = compare(models, volume, start=pd.Timestamp("2018-04-01"), step=DAY, level=80)
columns = ["mase", "rmsse", "scaled_crps", "coverage-80", "width-80", "dm", "dm_p", "fit_seconds"]
print(found.table()[columns].round(3).to_string())

figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
plot_comparison(found, ax)
figure.savefig("comparison.png", dpi=120)
