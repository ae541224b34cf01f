"""Laws that every forecaster obeys: batch equals stream, units and calendar do not matter, nothing leaks."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

# Histories as short as these may well be told to be too short.
pytestmark = pytest.mark.filterwarnings("ignore::fracts.checks.FitWarning")

HISTORY = 40
LEVELS = [50, 90]


def close(entry, found, expected, scale):
    """Equal to the tolerance of the entry, relative to `scale`; to the bit where that is 0."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=entry.tolerance * scale)


def law(*drawn):
    """Make a test of a claim about an entry and what is `drawn`, with the examples that the entry affords."""

    def test_of(claim):
        def test(entry):
            def tried(example):
                claim(entry, *example)

            tried.__name__ = claim.__name__  # what its failing examples are kept under
            settings(max_examples=entry.examples)(given(st.tuples(*drawn))(tried))()

        return test

    return test_of


@st.composite
def days(draw, n_series=1):
    """A wide frame of 60 days with holes and runs of NaN, its first row complete."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.normal(size=(60, n_series)).cumsum(axis=0) + 10
    values[rng.random(values.shape) < draw(st.sampled_from([0.0, 0.1, 0.5]))] = np.nan
    values[0] = rng.normal(size=n_series)
    start, stop = sorted(draw(st.tuples(st.integers(1, 60), st.integers(1, 60))))
    values[start:stop, 0] = np.nan
    return pd.DataFrame(values, pd.date_range("2024-02-20", periods=60, freq="D"), list("abc")[:n_series])


@law(st.data())
def test_any_cutting_of_a_history_gives_one_forecast(entry, data):
    y = data.draw(days(n_series=2))
    fitted = entry.make(3).fit(y[:HISTORY])
    cuts = sorted(data.draw(st.sets(st.integers(1, 59), max_size=6)))
    pieces = [y.iloc[start:stop] for start, stop in zip([0, *cuts], [*cuts, 60], strict=True)]
    stream = fitted.apply(pieces[0])
    for piece in pieces[1:]:
        if data.draw(st.booleans()):
            stream.update(piece[data.draw(st.permutations(["a", "b"]))])
        else:
            for row in piece.to_numpy():
                stream.learn_many(row)
    close(
        entry,
        stream.forecast(8, level=LEVELS),
        fitted.apply(y).forecast(8, level=LEVELS),
        y.abs().max().max(),
    )
    assert stream.cutoff_ == y.index[-1]


@law(st.data())
def test_fit_and_update_equal_apply_of_the_whole(entry, data):
    y = data.draw(days())["a"]
    fitted = entry.make(3).fit(y[:HISTORY])
    whole = fitted.apply(y).forecast(level=LEVELS)
    for value in y[HISTORY:]:
        fitted.learn_one(value)
    close(entry, fitted.forecast(level=LEVELS), whole, y.abs().max())


@law(st.data())
def test_dropping_a_row_equals_a_row_without_value(entry, data):
    y = data.draw(days())["a"]
    model = entry.make(3).fit(y[:HISTORY])
    dropped = model.apply(y[y.notna() | (y.index == y.index[-1])])  # the last row moves the clock
    close(entry, model.apply(y).forecast(3), dropped.forecast(3), y.abs().max())


@law(st.data())
def test_units_do_not_matter(entry, data):
    y, unit = data.draw(days())["a"], data.draw(st.sampled_from([1000.0, 1e-3, *([-1.0] * entry.odd)]))
    forecast = entry.make(3).fit(y).predict(5)
    scaled = entry.make(3).fit(y * unit).predict(5)
    np.testing.assert_allclose(
        scaled / unit, forecast, rtol=0, atol=(entry.tolerance + 1e-12) * y.abs().max()
    )


@law(st.data(), st.integers(-5000, 5000))
def test_a_shift_of_the_calendar_changes_no_value(entry, data, shift):
    y = data.draw(days())["a"]
    shifted = y.set_axis(y.index + pd.Timedelta(shift, "D"))
    first, second = (entry.make(3).fit(series).predict(4, level=LEVELS) for series in (y, shifted))
    np.testing.assert_array_equal(first, second)
    assert (second.index - first.index == pd.Timedelta(shift, "D")).all()


@law(st.data())
def test_predict_forecast_and_score_change_nothing(entry, data):
    y = data.draw(days())["a"]
    y.iloc[[1, 2, 55]] = [1.0, 2.0, 3.0]
    model = entry.make(3).fit(y[:HISTORY])
    before = pickle.dumps(model)
    first = model.predict(level=LEVELS)
    model.forecast(9), model.score(y[HISTORY:]), model.predict(1, quantiles=0.3), model.apply(y)
    assert pickle.dumps(model) == before
    pd.testing.assert_frame_equal(model.predict(level=LEVELS), first)
    pd.testing.assert_frame_equal(pickle.loads(before).predict(level=LEVELS), first)


@law(st.data())
def test_fit_leaves_the_data_and_the_parameters_alone(entry, data):
    y = data.draw(days(n_series=2))
    kept, model = y.copy(deep=True), entry.make(3)
    params = model.get_params()
    model.fit(y).update(y.set_axis(y.index + pd.Timedelta(60, "D"))).predict()
    pd.testing.assert_frame_equal(y, kept)
    assert model.get_params() == params


@law(st.data())
def test_a_second_fit_forgets_the_first(entry, data):
    y, other = data.draw(days())["a"], data.draw(days(n_series=3))
    model = entry.make(3).fit(other).update(other.set_axis(other.index + pd.Timedelta(60, "D")))
    anew = clone(model).fit(y)
    pd.testing.assert_frame_equal(model.fit(y).predict(5, level=LEVELS), anew.predict(5, level=LEVELS))
    assert vars(model).keys() == vars(anew).keys()


@law(st.data(), st.integers(HISTORY, 58))
def test_a_forecast_does_not_see_what_comes_later(entry, data, known):
    y = data.draw(days())["a"]
    y.iloc[-1] = 3.0
    other = y.where(np.arange(60) < known, y + 100)
    start = entry.make(3).fit(y[:HISTORY])
    first, second = (forecasts_on_the_way(start, future[HISTORY:]) for future in (y, other))
    np.testing.assert_array_equal(first[: known - HISTORY + 1], second[: known - HISTORY + 1])
    assert np.abs(first[-1] - second[-1]).max() > 1.0


def forecasts_on_the_way(start, future):
    """Of a stream that begins with the very state of `start`: after none, one, ... all values of `future`."""
    stream = copy.copy(start)
    forecasts = [stream.forecast(8, level=LEVELS)]
    for value in future:
        forecasts.append(stream.learn_one(value).forecast(8, level=LEVELS))
    return np.array(forecasts)


@law(st.data(), st.integers(1, 20))
def test_a_shorter_horizon_is_a_prefix_of_a_longer_one(entry, data, horizon):
    y = data.draw(days())["a"]
    model = entry.make(3).fit(y)
    close(entry, model.forecast(horizon), model.forecast(20)[:horizon], y.abs().max())


@law(st.data())
def test_quantiles_never_cross_and_their_median_is_the_point(entry, data):
    model = entry.make(3).fit(data.draw(days())["a"])
    table = model.forecast(12, quantiles=[0.5, *np.linspace(0.005, 0.995, 34)])
    assert (np.diff(table[:, 1:], axis=1) >= 0).all()
    np.testing.assert_array_equal(table[:, 0], table[:, 1 + 17])


@pytest.mark.parametrize("rows", [1, 2, 3, 8])
@pytest.mark.parametrize("constant", [0.0, 7.5])
def test_a_short_constant_history_goes_on(entry, rows, constant):
    forecast = entry.make(3).fit([constant] * rows).predict(10, level=90)
    atol = entry.tolerance * max(constant, 1.0)
    np.testing.assert_allclose(forecast, np.full((10, 3), constant), rtol=0, atol=atol)
