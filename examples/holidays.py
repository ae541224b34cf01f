"""Forecast a day of road traffic that knows of holidays, and say what that is worth.

    python examples/holidays.py        # about half a minute on a laptop CPU

The holidays are a column of X known in advance, from pandas' calendar of the United States. Days off
elsewhere are those of the package `holidays`:
`pd.to_datetime(list(holidays.country_holidays("DE", years=[2017, 2018])))`.
"""

import numpy as np
import pandas as pd
from pandas.tseries.holiday import USFederalHolidayCalendar

from fracts import FracRidge
from fracts.datasets import load_traffic_volume

DAY = 24  # hours

volume = load_traffic_volume()  # vehicles per hour
hours = pd.date_range(volume.index[0], periods=len(volume) + DAY, freq="h")
holidays = USFederalHolidayCalendar().holidays(hours[0], hours[-1])
off = hours.normalize().isin(holidays)
# What a day off does hangs on the hour: a category each, and one for all hours at work.
kind = pd.Categorical(np.where(off, "off " + hours.hour.astype(str), "at work"))
X = pd.DataFrame({"kind": kind}, hours)

history = volume[:"2018-03-31"]
models = {
    "without": (FracRidge(DAY).fit(history), None),
    "with holidays": (FracRidge(DAY).fit(history, X), X),
}
errors = {name: [] for name in models}
days = pd.date_range("2018-04-01", "2018-09-29")
for day in days:
    following = volume[day : day + pd.Timedelta(hours=DAY - 1)]
    for name, (model, known) in models.items():
        errors[name].append(np.abs(following - model.predict(X=known)).mean())
        model.update(following, known)

print("mean absolute error, vehicles an hour, the next day from every midnight")
print(f"{'':<14} {'all days':>9} {'holidays':>9}")
for name, error in errors.items():
    print(f"{name:<14} {np.nanmean(error):>9.0f} {np.nanmean(np.array(error)[days.isin(holidays)]):>9.0f}")
