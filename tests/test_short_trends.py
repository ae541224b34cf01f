"""A trend of few rows, of which no forecast can be held out, runs on and not away."""

import numpy as np
import pytest

from fracts import FracForecaster, FracRidge
from fracts.folds import FoldMoments, Share, origins
from fracts.recall import linear_memory
from fracts.series import Panel

pytestmark = pytest.mark.filterwarnings("ignore:the longest history:fracts.FitWarning")
SLOPE = 10.0
MODELS = {
    "ridge": lambda horizon: FracRidge(horizon, season_lengths=()),
    "linear path": lambda horizon: FracForecaster(horizon, season_lengths=(), n_layers=0),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("rows", "horizon"), [(20, 6), (20, 12), (25, 12), (30, 12), (40, 6)])
def test_a_short_line_rises_by_less_than_half_too_much(make, rows, horizon):
    y = SLOPE * np.arange(rows)
    rise = make(horizon).fit(y).predict()[-1] - y[-1]
    assert 0.4 < rise / (SLOPE * horizon) < 1.5


@pytest.mark.parametrize(("rows", "horizon"), [(20, 6), (20, 12), (30, 12), (40, 6)])
def test_a_short_noisy_line_is_told_better_than_by_its_last_value(rows, horizon):
    rng = np.random.default_rng(0)
    ours, last = [], []
    for _ in range(10):
        y = SLOPE * (np.arange(rows + horizon) + rng.normal(size=rows + horizon))
        past, to_come = y[:rows], y[rows:]
        ours.append(np.abs(FracRidge(horizon, season_lengths=()).fit(past).predict() - to_come).mean())
        last.append(np.abs(past[-1] - to_come).mean())
    assert np.mean(ours) < 0.5 * np.mean(last)


def test_in_units_an_origin_counts_by_the_scale_it_had_beside_the_last_one():
    rng = np.random.default_rng(1)
    values = np.stack([np.arange(60.0), 5 * rng.normal(size=60)]) + rng.normal(size=(2, 60))
    panel = Panel(values, np.arange(60.0))
    memory = linear_memory(panel, 3, 6, (1.0, 64.0), ())
    leads, weights = np.arange(3), np.array([1.0, 3.0])
    learned = FoldMoments.of(memory, Share(panel, weights), leads, 1, pooled=True, in_units=True).whole(0)

    cross = np.zeros((memory.n_features, 3))
    for part in origins(memory, panel, leads, pooled=True):
        last = np.array([np.std(values[series]) for series in part.series])  # the memory is far longer
        counted = weights[part.series, None] * (part.scale / last[:, None]) ** 2
        targets = np.nan_to_num(part.targets[0])
        cross += np.einsum("so,sof,sol->fl", counted, part.features, targets)
    np.testing.assert_allclose(learned.cross[0], cross, rtol=2e-3, atol=2e-3 * np.abs(cross).max())
