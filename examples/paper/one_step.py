"""One-step forecasts by a single layer trained from nothing: what the parts of FRAC are worth on series.

One idea: as in the probe, training sees windows of 512 steps from an empty memory, and the test rolls on
from the start of the series with the memory carried along. The error is told as a ratio to a predictor that
owes nothing to a network: the exact one for ARFIMA, HAR by least squares for realised volatility.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.datasets import arfima_one_step, make_arfima
from fracts.mixer import linear

WIDTH, WINDOW, BATCH, SEGMENT = 32, 512, 16, 4096
WARM_UP, CLIP = 50, 1.0


@dataclass(frozen=True)
class Series:
    """values: (time,), standardised by the first `fitted`; rival: (time,), its one-step forecasts of them."""

    values: NDArray[np.float64]
    fitted: int
    rival: NDArray[np.float64]


def arfima(seed: int) -> Series:
    """ARFIMA(0, 0.4, 0), 16,384 steps to learn from and 114,688 to forecast, beside the exact predictor."""
    y = make_arfima(131072, 0.4, random_state=seed)
    return _standardised(y, 16384, arfima_one_step(y, 0.4))


def volatility(seed: int) -> Series:
    """Log realised volatility of the S&P 500, 3,000 days to learn from, beside HAR of the same days."""
    if "FRACTS_DATA" not in os.environ:
        raise SystemExit("FRACTS_DATA must name the folder that holds sp500_rv5_daily.csv.gz (README.md)")
    table = pd.read_csv(Path(os.environ["FRACTS_DATA"]) / "sp500_rv5_daily.csv.gz")
    y, fitted = np.log(table["rv5"].to_numpy()), 3000
    means = [pd.Series(y).rolling(span, min_periods=1).mean() for span in (1, 5, 22)]
    x = np.column_stack([*means, np.ones(y.size)])[:-1]
    weights = np.linalg.lstsq(x[22:fitted], y[23 : fitted + 1], rcond=None)[0]
    return _standardised(y, fitted, np.append(y[0], x @ weights))


def _standardised(y: NDArray[np.float64], fitted: int, rival: NDArray[np.float64]) -> Series:
    centre, scale = y[:fitted].mean(), y[:fitted].std()
    return Series((y - centre) / scale, fitted, (rival - centre) / scale)


class OneStep(nn.Module):
    """Forecasts of the next value; `make(generator)` gives the mixer.

    odd_value, even_gates: as in the first layer of `fracts.encoder`; without, both read normed features.
    """

    def __init__(
        self,
        make: Callable[[torch.Generator], nn.Module],
        *,
        odd_value: bool,
        even_gates: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.odd_value, self.even_gates = odd_value, even_gates
        self.embed = linear(1, WIDTH, generator, bias=not odd_value)
        self.even = linear(3, WIDTH, generator)
        self.mixer = make(generator)
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-6) for _ in range(2))
        self.up, self.down = (
            linear(WIDTH, 2 * WIDTH, generator),
            linear(2 * WIDTH, WIDTH, generator, scale=0.5),
        )
        self.read = linear(WIDTH, 1, generator)

    def forward(self, z: Tensor, state: object = None) -> tuple[Tensor, object]:
        """Forecasts (batch, time) and the state; z: (batch, time)."""
        x, size = self.embed(z[..., None]), z.abs()[..., None]
        normed = F.silu(self.norms[0](x))
        even = torch.cat([torch.log1p(size), 1 / (1 + size.square()), torch.exp(-size)], -1)
        gate = F.silu(self.even(even)) if self.even_gates else normed
        y, state = self.mixer(x if self.odd_value else normed, gate, state)
        x = x + y
        x = x + self.down(F.silu(self.up(self.norms[1](x))))
        return self.read(x)[..., 0], state


def train(model: OneStep, series: Series, *, learning_rate: float, steps: int, seed: int) -> None:
    """AdamW down a cosine on windows of the fitted part."""
    z = torch.from_numpy(series.values[: series.fitted]).float().unfold(0, WINDOW + 1, 1)
    draws = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), learning_rate, betas=(0.9, 0.99), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / steps)),
    )
    for _ in range(steps):
        windows = z[torch.randint(len(z), (BATCH,), generator=draws)]
        optimiser.zero_grad()
        F.mse_loss(model(windows[:, :-1])[0], windows[:, 1:]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()


@torch.no_grad()
def error_ratio(model: OneStep, series: Series) -> float:
    """Mean squared error after the fitted part, over that of the rival."""
    state, forecasts = None, []
    for part in torch.from_numpy(series.values[None, :-1]).float().split(SEGMENT, 1):
        forecast, state = model(part, state)
        forecasts.append(forecast[0])
    after = slice(series.fitted, None)
    errors = series.values[1:] - torch.cat(forecasts).double().numpy()
    rival = series.values - series.rival
    return float(np.mean(errors[series.fitted - 1 :] ** 2) / np.mean(rival[after] ** 2))
