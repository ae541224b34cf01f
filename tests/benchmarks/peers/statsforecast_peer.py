"""Models of statsforecast on series from stdin, forecasts and CPU seconds to stdout, for bench_baselines.py.

Needs an environment of its own with `pip install statsforecast`.
"""

import json
import sys
import time

import numpy as np
from statsforecast.models import AutoARIMA, AutoETS, Theta

MODELS = {"AutoETS": AutoETS, "Theta": Theta, "AutoARIMA": AutoARIMA}

task = json.load(sys.stdin)
series = [np.array(values) for values in task["series"]]
# Once before the clock starts: what is compiled at its first use is not what is measured.
MODELS[task["model"]](season_length=task["season"]).forecast(y=series[0][-4 * task["season"] :], h=1)
start = time.process_time()
forecasts = [
    MODELS[task["model"]](season_length=task["season"]).forecast(y=values, h=task["horizon"])["mean"].tolist()
    for values in series
]
print(json.dumps({"forecasts": forecasts, "seconds": time.process_time() - start}))
