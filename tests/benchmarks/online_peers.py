"""One contestant of `bench_online.py`, in a process and an environment of its own.

    python online_peers.py NAME        # JSON lines in and out; started by bench_online.py

`{"start": n}` fits on a history of n hours and answers with the seconds that took; `{"steps": k}` takes k
further values one by one and answers with the nanoseconds of each "learn it and forecast 24 hours", and the
last forecast. Nothing here is imported before a contestant needs it.
"""

import json
import sys
import time

import numpy as np

HORIZON, DAY = 24, 24
FITTED = 2000  # hours that slow fits are made on; the state or the data is of the whole history all the same


def series(n):
    """Hours of a daily pattern with long noise, the same in every process."""
    t, draws = np.arange(n), np.random.default_rng(0)
    slow = np.cumsum(draws.normal(size=n // DAY + 1)) * 0.05
    return 10 + np.sin(2 * np.pi * t / DAY) + slow[t // DAY] + 0.3 * draws.normal(size=n)


class FracForecasterOne:
    """learn_one + forecast of the default network."""

    def start(self, y):
        from fracts import FracForecaster

        self.model = self.fitted(FracForecaster(HORIZON, season_lengths=DAY, random_state=0), y)

    @staticmethod
    def fitted(model, y):
        return model.fit(y[:10_000]).apply(y)

    def step(self, value):
        return self.model.learn_one(value).forecast()


class FracForecasterSpeaking(FracForecasterOne):
    """The same where the network has a say: it is left out where, as here, held-out time does not want it."""

    def start(self, y):
        super().start(y)
        self.model = speaking(self.model).apply(y)


def speaking(model):
    """A fitted `model` with small random weights where its network speaks; to be applied to a history."""
    import torch

    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.network_.head.parameters():
            weights.normal_(std=0.01, generator=generator)
    return model


class FracForecasterSpeakingNumpy(FracForecasterSpeaking):
    """The same as where numba is not installed."""

    def start(self, y):
        from fracts import fast

        fast.find_spec = lambda name: None
        super().start(y)


class FracForecasterNumpy(FracForecasterOne):
    """The default network as where numba is not installed."""

    def start(self, y):
        from fracts import fast

        fast.find_spec = lambda name: None
        super().start(y)


class FracRidgeOne(FracForecasterOne):
    """learn_one + forecast of the linear model."""

    def start(self, y):
        from fracts import FracRidge

        self.model = self.fitted(FracRidge(HORIZON, season_lengths=DAY), y)


class FracRidgeNumpy(FracRidgeOne):
    """The same as where numba is not installed."""

    def start(self, y):
        from fracts import fast

        fast.find_spec = lambda name: None
        super().start(y)


class FracForecasterPandas(FracForecasterOne):
    """update with a Series of one row + predict to a Series, of the default network."""

    def start(self, y):
        import pandas as pd

        from fracts import FracForecaster

        hours = pd.date_range("1900-01-01", periods=len(y), freq="h", unit="s")
        model = FracForecaster(HORIZON, season_lengths=DAY, random_state=0)
        self.model = self.fitted(model, pd.Series(y, hours))
        self.rows = iter(pd.date_range(hours[-1], periods=100_000, freq="h", unit="s")[1:])
        self.pandas = pd

    def step(self, value):
        row = self.pandas.Series([value], self.pandas.DatetimeIndex([next(self.rows)]))
        return self.model.update(row).predict().to_numpy()


class MatVec:
    """A matrix-vector product, 64 x 64 in float32: what one call of numpy costs on this machine."""

    def start(self, y):
        self.matrix = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
        self.vector = np.ones(64, dtype=np.float32)

    def step(self, value):
        return (self.matrix @ self.vector)[:HORIZON]


class Sarimax:
    """statsmodels SARIMAX (1,0,1)(1,0,0)24 with a constant: append(refit=False) + forecast."""

    def start(self, y):
        from statsmodels.tsa.statespace.sarimax import SARIMAX

        model = SARIMAX(y[:FITTED], order=(1, 0, 1), seasonal_order=(1, 0, 0, DAY), trend="c")
        self.result = model.fit(disp=False, maxiter=20).apply(y)

    def step(self, value):
        self.result = self.result.append([value], refit=False)
        return self.result.forecast(HORIZON)


class AutoEts:
    """statsforecast AutoETS: forward over the whole history."""

    def start(self, y):
        from statsforecast.models import AutoETS

        self.model = AutoETS(season_length=DAY).fit(y[:FITTED])
        self.y = list(y)

    def step(self, value):
        self.y.append(value)
        return self.model.forward(np.asarray(self.y), h=HORIZON)["mean"]


class Sktime:
    """sktime ExponentialSmoothing (additive season): update, which fits again, + predict."""

    def start(self, y):
        import pandas as pd
        from sktime.forecasting.exp_smoothing import ExponentialSmoothing

        self.pandas, self.next = pd, len(y)
        self.model = ExponentialSmoothing(seasonal="add", sp=DAY)
        self.model.fit(pd.Series(y), fh=np.arange(1, HORIZON + 1))

    def step(self, value):
        self.model.update(self.pandas.Series([value], index=[self.next]))
        self.next += 1
        return self.model.predict().to_numpy()


class NeuralForecastNhits:
    """neuralforecast NHITS (input 96): predict(df) of the last hours."""

    def start(self, y):
        import logging

        import pandas as pd
        from neuralforecast import NeuralForecast
        from neuralforecast.models import NHITS

        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
        self.pandas, self.y = pd, list(y)
        quiet = {"enable_progress_bar": False, "logger": False, "enable_checkpointing": False}
        model = NHITS(h=HORIZON, input_size=4 * DAY, max_steps=50, accelerator="cpu", **quiet)
        self.model = NeuralForecast(models=[model], freq=1)
        self.model.fit(self.frame(y[:FITTED]))

    def frame(self, y):
        return self.pandas.DataFrame({"unique_id": "y", "ds": np.arange(len(y)), "y": y})

    def step(self, value):
        self.y.append(value)
        return self.model.predict(df=self.frame(self.y[-4 * DAY :]))["NHITS"].to_numpy()


class RiverSnarimax:
    """River SNARIMAX (24 lags, one seasonal): learn_one + forecast."""

    def start(self, y):
        from river.time_series import SNARIMAX

        self.model = SNARIMAX(p=DAY, d=0, q=0, m=DAY, sp=1)
        for value in y:
            self.model.learn_one(float(value))

    def step(self, value):
        self.model.learn_one(float(value))
        return np.array(self.model.forecast(HORIZON))


class RiverHoltWinters(RiverSnarimax):
    """River HoltWinters with a season of 24: learn_one + forecast."""

    def start(self, y):
        from river.time_series import HoltWinters

        self.model = HoltWinters(alpha=0.3, beta=0.1, gamma=0.3, seasonality=DAY)
        for value in y:
            self.model.learn_one(float(value))


CONTESTANTS = {
    "FracForecaster": FracForecasterOne,
    "FracForecaster-numpy": FracForecasterNumpy,
    "FracForecaster-speaking": FracForecasterSpeaking,
    "FracForecaster-speaking-numpy": FracForecasterSpeakingNumpy,
    "FracRidge": FracRidgeOne,
    "FracRidge-numpy": FracRidgeNumpy,
    "FracForecaster-pandas": FracForecasterPandas,
    "matvec-64": MatVec,
    "statsmodels-SARIMAX": Sarimax,
    "statsforecast-AutoETS": AutoEts,
    "sktime-ExponentialSmoothing": Sktime,
    "neuralforecast-NHITS": NeuralForecastNhits,
    "river-SNARIMAX": RiverSnarimax,
    "river-HoltWinters": RiverHoltWinters,
}


def main():
    contestant, future = CONTESTANTS[sys.argv[1]](), iter(())
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        if "start" in asked:
            y = series(asked["start"] + 100_000)
            begun = time.perf_counter()
            contestant.start(y[: asked["start"]])
            future = iter(y[asked["start"] :].tolist())
            told = {"seconds": time.perf_counter() - begun}
        else:
            taken = []
            for _ in range(asked["steps"]):
                value = next(future)
                begun = time.perf_counter_ns()
                forecast = contestant.step(value)
                taken.append(time.perf_counter_ns() - begun)
            told = {"ns": taken, "forecast": np.asarray(forecast, dtype=float).tolist()}
        answers.write(json.dumps(told) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
