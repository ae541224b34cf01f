"""`FracForecaster`: the linear path of `FracRidge` and, beside it, selective FRAC networks."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from fracts.base import Forecaster
from fracts.calibration import Calibration
from fracts.checks import (
    check_anchor,
    check_calibration,
    check_forgetting,
    check_memory,
    check_network,
    check_penalty,
)
from fracts.conformal import Calibrator, Due
from fracts.effect_fit import learned_effects
from fracts.encoder import EncoderState, FracEncoder
from fracts.fast import by_parts
from fracts.fleet import OnDevice, device_of
from fracts.forecasts import QUANTILES, Forecast
from fracts.heads import QuantileHead
from fracts.inspection import Inspection
from fracts.linear import Reading
from fracts.linear_fit import fit_linear, is_pooled
from fracts.network import FracNetwork, as_arrays, as_state, as_weights, held_now, load_weights, one_thread
from fracts.network_response import network_response, typical_rows
from fracts.online import due_row, encode_row, head_row, shift_medians
from fracts.passes import ROWS_AT_ONCE
from fracts.paths import extended
from fracts.plan import Plan, plan_of
from fracts.reading import Reading as History
from fracts.recall import CENTRE_MEMORY, beside_smoothing, linear_memory
from fracts.recursive import Recursion, begun, learned_on
from fracts.scoring import Continuation
from fracts.seasons import chosen_season_lengths
from fracts.series import Panel, State
from fracts.state_checks import check_layers
from fracts.timeline import Clock
from fracts.windows import Epoch

if TYPE_CHECKING:
    import lightning

MAX_SEASONAL_HEADS = 4  # of the strongest frequencies; the linear path has them all
_MIN_ROWS = 100  # of training time for a network to be worth a try
_MEAN_WEIGHTS = np.diff(np.concatenate([[0.0], (QUANTILES[1:] + QUANTILES[:-1]) / 2, [1.0]]))


class FracForecaster(OnDevice, Calibration, Forecaster, Inspection):
    """Forecasts from fractional memories: a linear path, and selective FRAC networks beside it.

    The linear path is that of `FracRidge`. A network reads the series through banks of exponential modes
    whose step, order and decay rate are set by every observation, and is trained on windows of the history to
    tell, as the linear path does, how far the next values lie from the anchors. At every lead the forecast is
    a mean of the two, by the shares that did best on the last fifth of the history, of which neither had seen
    anything then. Without a clear gain, and after rows without a value, the linear path speaks alone.

    Parameters
    ----------
    horizon : the longest lead trained for, in steps. Beyond it sampled paths roll on.
    n_modes : timescales of every memory, at least 2, the tail mode included.
    timescales : the shortest and the longest memory to represent, in steps.
    centre_memory : steps over which the mean and the spread of a series, that all is measured by, forget.
    season_lengths : "auto" (those that the calendar implies and the history shows three times; where it has
        none, as with integers, those after which the values repeat), an int, a tuple, or () for none, in
        steps.
    penalty : strength of the linear path's prior, as the observations that outweigh it; "auto" averages
        over several.
    anchor : what to lean on: the "centre" of a series, its "last" value, a profile of its "season"; "auto"
        averages over all.
    width : features of a row in the network, a multiple of 2 * n_heads.
    n_layers : FRAC layers; 0 leaves the linear path alone.
    n_heads : plain heads of a layer; each frequency of a season adds one.
    n_networks : trained one after the other from different weights, and averaged.
    window : rows of a training window. It does not limit the memory.
    batch_size : windows of a training batch, whose time they take; "auto" for as many as hold 2048 rows.
    max_epochs, learning_rate : of the training, which stops early by held-out time.
    forgetting : None, or what a row weighs beside the next one that `update(..., update_params=True)` learns
        from, above 0 and up to 1: the linear path, and no network or its share, is then learned on by
        recursive least squares. Keeps a matrix of features by features for each lead, and for each series
        that has coefficients of its own.
    calibration : "held-out": intervals as wide as held-out errors ask for; "adaptive": they start there and
        learn from every value, each series for itself, by a conformal tracker (`fracts.conformal`).
    past_only : columns of `X` that are known up to now and not in advance, as measured weather is.
    lower : None, or a bound that no value lies below: forecasts, quantiles among them, are cut off there.
    transform : the scale to work on: None, "log", "log1p", "box-cox", "auto" (the logarithm of positive
        values where it comes nearer to them on held-out time, else None), or an increasing scikit-learn
        transformer of one column, fitted on the values of all series together. Median and quantiles are
        transformed exactly; `point="mean"` is integrated over the quantiles, since the mean of exp(x) lies
        above exp of the mean.
    device : "auto" (a GPU where there is one), "cpu" or "cuda", to train and to `learn_many` series on.
    random_state : seed of the initial weights and of the windows; None draws one.
    verbose : 1 shows a progress bar of the training, 0 nothing; the logger `fracts` has a record an epoch.
    trainer : None, or a function that returns a new `lightning.Trainer`, called at each fit.

    Attributes
    ----------
    season_lengths_ : tuple of int.
    network_ : torch module; None where n_layers is 0. Single rows are stepped with a copy of its weights that
        fit, load and apply make: after a change by hand `apply` a history.
    network_share_ : (horizon,), of the network in the median at each lead.
    history_ : list of (epoch, train_loss, held_out_loss), of one network after the other, each alone; epoch 0
        is the linear path.
    device_ : str, trained on. Weights, and a state that is asked for, come back to the CPU.
    covariates_ : list, the columns of `X`; the network sees each within ten standard deviations of its mean.

    Notes
    -----
    "Fractional State Space Transition for Long Sequence Modeling" is the source of the layer; CITATION has
    the methods.

    Examples
    --------
    >>> y = np.sin(np.arange(300) * 2 * np.pi / 10)
    >>> model = FracForecaster(2, season_lengths=10, max_epochs=1, random_state=0).fit(y)
    >>> model.predict().shape
    (2,)
    """

    _takes_covariates = True
    _historic = ("_recursion",)
    _recursion: Recursion | None = None

    def __init__(
        self,
        horizon: int,
        *,
        n_modes: int = 16,
        timescales: tuple[float, float] = (1.0, 131072.0),
        centre_memory: float = CENTRE_MEMORY,
        season_lengths: str | int | tuple[int, ...] = "auto",
        penalty: str | float = "auto",
        anchor: str = "auto",
        width: int = 64,
        n_layers: int = 2,
        n_heads: int = 4,
        n_networks: int = 1,
        window: int = 512,
        batch_size: int | str = "auto",
        max_epochs: int = 10,
        learning_rate: float = 2e-3,
        forgetting: float | None = None,
        calibration: str = "held-out",
        past_only: tuple[Any, ...] = (),
        lower: float | None = None,
        transform: Any = None,
        device: str = "auto",
        random_state: int | None = None,
        verbose: int = 0,
        trainer: "Callable[[], lightning.Trainer] | None" = None,
    ) -> None:
        self.horizon = horizon
        self.n_modes = n_modes
        self.timescales = timescales
        self.centre_memory = centre_memory
        self.season_lengths = season_lengths
        self.penalty = penalty
        self.anchor = anchor
        self.width = width
        self.n_layers = n_layers
        self.n_heads = n_heads
        self.n_networks = n_networks
        self.window = window
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.forgetting = forgetting
        self.calibration = calibration
        self.past_only = past_only
        self.lower = lower
        self.transform = transform
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.trainer = trainer

    def _fit(self, panel: Panel, clock: Clock) -> None:
        check_memory(self.n_modes, self.timescales, self.centre_memory)
        check_forgetting(self.forgetting)
        check_network(self)
        check_calibration(self.calibration)
        strength = check_penalty(self.penalty)
        self.season_lengths_ = chosen_season_lengths(self.season_lengths, panel, clock)
        check_anchor(self.anchor, self.season_lengths_)
        asked = self.season_lengths_, self._covariates.n_known, self.anchor, self.centre_memory
        memory = linear_memory(panel, self.horizon, self.n_modes, self.timescales, *asked)
        pooled = is_pooled("auto", panel, memory)
        if self._covariates.n_known:
            self._effects, panel = learned_effects(panel, memory, self.series_ids_, pooled=pooled)
        self._path = fit_linear(
            panel,
            beside_smoothing(memory, panel, pooled=pooled),
            self.series_ids_,
            pooled=pooled,
            strength=strength,
            averaged=self.forgetting is None,
        )
        self._recursion = begun(self._path, panel, self.forgetting)
        self._calibrate()
        self.device_ = device_of(self.device)
        self.network_: FracNetwork | None = None
        self.history_: list[Epoch] = []
        if self.n_layers:
            self._rows = typical_rows(panel)
            seeds = np.random.SeedSequence(self.random_state).generate_state(2 * self.n_networks).tolist()
            networks = [self._new_network(torch.Generator().manual_seed(seed)) for seed in seeds[::2]]
            if (~np.isnan(panel.values)).any(0).sum() >= max(_MIN_ROWS, 10 * self.horizon):
                self._train(networks, panel, seeds[1::2])
            else:
                self.network_ = FracNetwork.mean_of(networks)

    def _train(self, networks: list[FracNetwork], panel: Panel, seeds: list[int]) -> None:
        from fracts.training import train_beside

        self.network_, self.history_, share = train_beside(
            networks,
            panel,
            self._path,
            seeds,
            window=self.window,
            batch_size=None if isinstance(self.batch_size, str) else self.batch_size,
            max_epochs=self.max_epochs,
            learning_rate=self.learning_rate,
            device=self.device_,
            trainer=self.trainer,
            verbose=self.verbose,
        )
        self._path = replace(self._path, share=share.double().numpy().round(6))

    @property
    def network_share_(self) -> NDArray[np.float64]:
        return self._path.share if self._path.share.size else np.zeros(self.horizon)

    def _new_network(self, draws: torch.Generator) -> FracNetwork:
        frequencies = self._path.memory.bank.frequencies[:MAX_SEASONAL_HEADS]
        sizes = self.width, self.n_layers, self.n_heads, len(frequencies), self.n_modes
        n_columns, scales = self._path.memory.covariates.n_columns, (self.timescales[0], self.timescales[1])
        encoder = FracEncoder(*sizes, scales, draws, self.window, n_columns)
        told = torch.from_numpy(QUANTILES), torch.from_numpy(self._path.errors)
        head = QuantileHead(self.width, *told, self._covariates.n_known, draws)
        return FracNetwork([encoder], head, frequencies).eval()

    def _start(self, panel: Panel, reading: History) -> None:
        self._copy_weights()
        super()._start(panel, reading)

    def _copy_weights(self) -> None:
        """Take down the weights of the network as they are now, for single rows; a silent one is left out."""
        network = self.network_
        self._plan: Plan | None = None if network is None or network.head.silent else plan_of(network)

    def _learned_on(self, rows: Continuation) -> dict[str, Any]:
        if self._recursion is None:
            return super()._learned_on(rows)
        return learned_on(self._recursion, self._path, self._state, rows.whole(self._counts))

    def _empty_state(self, n_series: int) -> State:
        state, features = self._path.empty(self.series_ids_), None
        if self.network_ is not None and self._plan is not None:
            state |= as_arrays(self.network_.empty(n_series))
            features = state["features"]
        return state | ({} if self._calibrator is None else self._calibrator.empty(state["group"], features))

    def _advance(self, state: State, panel: Panel) -> State:
        if panel.times.size == 1:
            return by_parts(self._advance_part, state, panel)
        rows = max(1, ROWS_AT_ONCE // len(panel.values))
        for start in range(0, panel.times.size, rows):
            part = panel.part(start, start + rows)
            state = self._advance(state, part) if part.times.size == 1 else self._advance_part(state, part)
        return state

    def _advance_part(self, state: State, panel: Panel) -> State:
        after, features = self._moved(state, panel)
        if self._calibrator is None:
            return after
        said = self._path.unaware(state, panel)[0]
        return after | self._after_errors(self._calibrator, state, panel, said, features)[0]

    def _moved(self, state: State, panel: Panel) -> tuple[State, NDArray[np.floating]]:
        """State after the rows of `panel`, errors left aside, and features (series, rows, width) at each."""
        after, u = self._path.memory.advance(state, panel)
        if self.network_ is None or self._plan is None:
            return after, np.empty((*panel.values.shape, 0))
        if panel.times.size == 1:
            time, before = panel.times.item(), state["time"].item(0)
            gap = 0.0 if math.isnan(before) else time - before
            after = after | encode_row(self._plan, state, u[:, 0], time, gap, panel.covariates[:, 0])
            return after, after["features"][:, None]
        features, encoded = self._encoded(self.network_, state, panel, u)
        return after | as_arrays(encoded), features.numpy()

    def _moves(
        self, calibrator: Calibrator, due: Due, known: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        if self._plan is None:
            return super()._moves(calibrator, due, known)
        shift, below, above = np.nan_to_num(due_row(self._plan, due.features, calibrator.leads, known))
        return shift, np.exp(below), np.exp(above)

    def _encoded(
        self, network: FracNetwork, state: State, panel: Panel, u: NDArray[np.float64]
    ) -> tuple[torch.Tensor, EncoderState]:
        """Features (series, rows, width) of `panel`, standardised values `u`, and the state after it."""
        with torch.no_grad(), one_thread():
            return network.encode(
                torch.from_numpy(u),
                torch.from_numpy(panel.times).expand(u.shape),
                torch.from_numpy(_gaps(state, panel)).expand(u.shape),
                as_state(state, self.n_layers * len(network.encoders), network.dtype),
                torch.from_numpy(panel.covariates),
            )

    def _forecast(self, state: State, horizon: int, quantiles: NDArray[np.float64]) -> Forecast:
        read, advance, reach = self._read, lambda *at: self._moved(*at)[0], self._path.memory.reach
        return extended(read, advance, reach, state, self.horizon, horizon, quantiles)

    def _median(self, state: State, horizon: int) -> NDArray[np.float64]:
        if horizon > self.horizon or self._calibrator is not None:
            return super()._median(state, horizon)
        medians, scale = self._path.medians(state)
        if self._plan is not None:
            since = self._path.memory.density.since(state)
            at = slice(None) if since is None else np.flatnonzero(since == 0)
            moved = medians[at]
            shift_medians(self._plan, state["features"][at], state["ahead"][at], moved, scale[at])
            medians[at] = moved
        return medians[:, :horizon]

    def _run(
        self, state: State, panel: Panel, rows: NDArray[np.int64], ahead: NDArray[np.float64]
    ) -> tuple[Forecast, State]:
        reading, centre, scale, after = self._path.passed(state, panel, rows, ahead)
        seen: State = {k: state[k].repeat(rows.size) for k in ("group", "noise") if k in state}
        features: NDArray[np.floating] = np.empty((*panel.values.shape, 0))
        if self.network_ is not None and self._plan is not None:
            tokens, encoded = self._encoded(self.network_, state, panel, (panel.values - centre) / scale)
            features, after = tokens.numpy(), after | as_arrays(encoded)
            seen["features"] = features[:, rows].reshape(-1, features.shape[-1])
            seen["ahead"] = ahead.reshape(len(seen["group"]), *ahead.shape[2:])
        if self._calibrator is not None:
            said = self._path.unaware(state, panel)[0]
            kept, told = self._after_errors(self._calibrator, state, panel, said, features, rows)
            after, seen = after | kept, seen | told
        return self._told(reading, seen), after

    def _read(self, state: State) -> Forecast:
        return self._told(self._path.read(state), state)

    def _told(self, reading: Reading, state: State) -> Forecast:
        leads, centre, scale, late = reading
        errors = self._errors(state, late)
        moved = errors
        if self._plan is not None:
            moved = head_row(self._plan, state["features"], errors, state["ahead"])
            if late is not None:
                moved = np.where(late[:, None, None] > 0, errors, moved)
        mean = leads + (moved - errors) @ _MEAN_WEIGHTS
        mean = centre[:, None] + scale[:, None] * mean
        quantiles = centre[:, None, None] + scale[:, None, None] * (leads[..., None] + moved)
        return Forecast(mean, quantiles)

    def _packed(self) -> dict[str, Any]:
        packed = super()._packed()
        packed["learned"].pop("_plan", None)
        if (network := packed["learned"].get("network_")) is not None:
            packed["learned"]["network_"] = as_weights(network)
        return packed

    @classmethod
    def _unpacked(cls, parameters: dict[str, Any], learned: dict[str, Any]) -> Self:
        model = super()._unpacked(parameters, learned)
        if (weights := learned.get("network_")) is not None:
            check_layers(weights, model.width, model.n_layers)
            fresh = [model._new_network(torch.Generator()) for _ in range(model.n_networks)]
            model.network_ = FracNetwork.mean_of(fresh)
            load_weights(model.network_, weights)
        model._copy_weights()
        if model.network_ is not None:
            n_layers = model.n_layers * len(model.network_.encoders)
            model._state = held_now(model._state, n_layers, silent=model._plan is None)
        return model

    def _network_kernel(self, lags: NDArray[np.int64], lead: int) -> NDArray[np.float64]:
        if self.network_ is None:
            return np.zeros(lags.size)
        return network_response(self.network_, self._path.memory.scaler, self._rows, lags, lead)


def _gaps(state: State, panel: Panel) -> NDArray[np.float64]:
    """Steps to each row of `panel` from the one before, the first from the time of `state`."""
    before = state["time"][0] if np.isfinite(state["time"][0]) else panel.times[0]
    return np.diff(panel.times, prepend=before)
