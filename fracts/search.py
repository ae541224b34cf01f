"""`FracSearch`: parameters of a forecaster, chosen by Optuna on rolling origins, by one worker or many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from fracts.base import Forecaster
from fracts.baselines.needed import needed
from fracts.checks import check_positive_integer
from fracts.search_checks import check_budget, check_seed, check_selection, check_settings, check_switches
from fracts.search_line import line
from fracts.validation import Validation, check_metric

if TYPE_CHECKING:
    import optuna

    from fracts.objective import Objective


class FracSearch(BaseEstimator):
    """A forecaster whose parameters are searched.

    Trials are drawn by Optuna, fitted on the history before the first forecast of the validation, and scored
    on forecasts from rolling origins at its end; each sees only what was known there. The best is fitted
    anew on all of it.

    Any number of workers may search together: fits of the same task with one `storage` and `study_name`, at
    once or one after the other, on one machine or many. A worker that dies loses its trial only, which is
    then tried again by another.

    Parameters
    ----------
    estimator : a forecaster; it is copied. What is not searched stays as it is there.
    space : None for the default (of `FracRidge` and `FracForecaster`: mode count, both ends of the
        timescales, memory of the centre, seasons, penalty, anchor; of the network width, layers, learning
        rate); a dict of Optuna
        distributions by parameter, in which `timescales_low` and `timescales_high` are the ends of
        `timescales`; or a function of an Optuna trial that returns a dict of parameters; it is called
        again for the table, and should do nothing else.
    n_trials : trials that a call of fit runs, failed and pruned ones among them.
    timeout : seconds after which no trial is begun. One of `n_trials` and `timeout` is needed.
    storage : None for memory, of which a fit that is interrupted leaves nothing; the path of a journal file,
        an URL of a database ("sqlite:///study.db", "postgresql+psycopg://..."), or an Optuna storage.
    study_name : of the study in `storage`; None is "fracts".
    sampler : an Optuna sampler; None is TPE, seeded for each trial by `random_state` and its number.
    pruner : an Optuna pruner, which ends a network's training that lags behind; None is the median's.
    n_windows : forecasts that a trial is scored on; None for a fifth of the history, at least one.
    step : rows from one forecast to the next; None is the horizon.
    metric : "mase", "rmsse", "mae", "rmse", "crps" (mean pinball loss of 19 quantiles, doubled), or a
        quantile such as "pinball_0.9"; by series, mean over series. Squared errors are of the mean, others of
        the median.
    selection : which trial to take. "best": that of the least loss. "simplest": of those within one standard
        error of it that with the shortest upper timescale, and then the fewest modes; the standard error is
        that of the difference to the best on the splits. Without timescales it is the best.
    refit : whether the chosen is fitted on the whole history; without, there is nothing to predict with.
    enqueue : list of dicts of parameters to try first, in this order. What a dict leaves out is drawn.
    from_study : a study, or the name of one in `storage`, whose five best settings are tried next.
    heartbeat : seconds between signs of life of a worker; one that misses four is taken for dead.
    callback : function of the study and the trial, called after each trial; the search ends when it returns
        True.
    random_state : seed of the sampler, and of estimators that have one and are given none; None draws one.
    verbose : 1 shows a line with the best loss and the time left, 0 nothing; the logger `fracts` has a record
        of every trial that failed.

    Attributes
    ----------
    best_params_ : dict, parameters of the estimator in the trial chosen by `selection`.
    best_score_ : float, minus its metric, so that higher is better.
    best_index_ : int, its place in `cv_results_`.
    best_estimator_ : the forecaster with these parameters, fitted on all of the history, if `refit`.
    cv_results_ : dict of arrays, one entry a trial that did not fail, by all workers: `params`,
        `param_...` for what was drawn, `mean_test_score` (NaN where pruned) over all windows,
        `split0_test_score` and so on over the first run of consecutive windows and those after it (at most
        30 runs; a window each where there are no more), `rank_test_score`, `trial`, `state`, `seconds`.
    study_ : the Optuna study; its values are the metric, lower is better, and its `best_trial` the one of
        the least.
    n_windows_, step_ : int, of the validation.

    Notes
    -----
    The first trial of a study is the estimator as it stands, where the space holds it, so the best is
    at least as good on the validation. TPE is that of Bergstra, Bardenet, Bengio and Kegl (2011, Advances in
    Neural Information Processing Systems 24); searches need the extra, `pip install 'fracts[search]'`.

    Examples
    --------
    >>> from fracts import FracRidge
    >>> y = np.sin(np.arange(300) * 2 * np.pi / 10)
    >>> search = FracSearch(FracRidge(3, season_lengths=10), n_trials=3, random_state=0).fit(y)
    >>> search.predict().shape, sorted(search.best_params_)
    ((3,), ['anchor', 'centre_memory', 'n_modes', 'penalty', 'timescales'])
    """

    def __init__(
        self,
        estimator: Forecaster,
        space: Mapping[str, Any] | Callable[[optuna.Trial], Mapping[str, Any]] | None = None,
        *,
        n_trials: int | None = None,
        timeout: float | None = None,
        storage: Any = None,
        study_name: str | None = None,
        sampler: optuna.samplers.BaseSampler | None = None,
        pruner: optuna.pruners.BasePruner | None = None,
        n_windows: int | None = None,
        step: int | None = None,
        metric: str = "mase",
        selection: str = "best",
        refit: bool = True,
        enqueue: Sequence[Mapping[str, Any]] = (),
        from_study: optuna.Study | str | None = None,
        heartbeat: int = 30,
        callback: Callable[[optuna.Study, optuna.trial.FrozenTrial], Any] | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.timeout = timeout
        self.storage = storage
        self.study_name = study_name
        self.sampler = sampler
        self.pruner = pruner
        self.n_windows = n_windows
        self.step = step
        self.metric = metric
        self.selection = selection
        self.refit = refit
        self.enqueue = enqueue
        self.from_study = from_study
        self.heartbeat = heartbeat
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, y: Any, X: Any = None) -> Self:
        """Run trials on the history `y`, and fit the best on all of it.

        A study that exists in the storage goes on. Without a storage every fit begins a new one.

        Parameters
        ----------
        y : (time,) or (time, series), any container that the estimator takes.
        X : covariates of these rows, as the estimator takes them. Every origin of the validation is told the
            true ones that are known in advance.

        Returns
        -------
        The search itself.

        Raises
        ------
        ModuleNotFoundError : Optuna is not installed, or the driver of a database.
        OSError : the storage cannot be opened.
        TypeError : the estimator is no forecaster; a parameter or `y` is of a kind that is not read.
        ValueError : a parameter is out of range; `y` is too short for the windows; the study is of other data
            or another task; no trial of the study succeeded.

        Examples
        --------
        >>> from fracts import WindowAverage
        >>> y = np.arange(60) % 6
        >>> search = FracSearch(WindowAverage(6, 20), n_trials=12, random_state=0).fit(y)
        >>> bool(search.best_score_ >= search.cv_results_["mean_test_score"][0])
        True
        """
        needed("optuna", type(self).__name__, "search")
        from fracts import studies
        from fracts.objective import Objective
        from fracts.spaces import Space

        if not isinstance(self.estimator, Forecaster):
            raise TypeError(
                f"estimator came as {type(self.estimator).__name__}; a forecaster such as FracRidge(24) is "
                "needed."
            )
        n_trials, timeout = check_budget(self.n_trials, self.timeout)
        seed, settings = check_seed(self.random_state), check_settings(self.enqueue)
        check_switches(self.refit, self.verbose, self.callback)
        heartbeat = check_positive_integer(self.heartbeat, "heartbeat")
        metric = check_metric(self.metric)
        check_selection(self.selection)
        validation = Validation.of(self.estimator, y, X, self.n_windows, self.step, metric)
        space = Space.of(self.space, self.estimator, validation.season_lengths)
        first = [space.check_settings(each) for each in settings]
        objective = Objective(self.estimator, space, validation, seed)
        drawn = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        with studies.quiet():
            storage = studies.open_storage(self.storage, heartbeat)
            study = studies.open_study(storage, self.study_name, self.sampler, self.pruner, drawn)
            studies.join(study, validation.task(self.estimator))
            others = studies.best_settings(self.from_study, storage)
            studies.line_up(study, space.start(self.estimator), first + others)
            with line(n_trials, timeout, metric, shown=self.verbose == 1) as told:
                studies.run_trials(study, objective, n_trials, timeout, told.then(self.callback))
            self._conclude(study, objective, y, X)
        return self

    def predict(
        self,
        horizon: int | None = None,
        X: Any = None,
        *,
        level: float | Iterable[float] | None = None,
        quantiles: float | Iterable[float] | None = None,
        point: str = "median",
    ) -> Any:
        """`best_estimator_.predict`, with its parameters, results and errors.

        Examples
        --------
        >>> from fracts import WindowAverage
        >>> search = FracSearch(WindowAverage(2, 9), n_trials=2, random_state=0)
        >>> search.fit(np.arange(20) % 2).predict().shape
        (2,)
        """
        return self._best().predict(horizon, X, level=level, quantiles=quantiles, point=point)

    def update(self, y: Any, X: Any = None) -> Self:
        """`best_estimator_.update`, with its parameters and errors: the state moves on over the rows `y`.

        Returns
        -------
        The search itself.

        Examples
        --------
        >>> from fracts import WindowAverage
        >>> search = FracSearch(WindowAverage(2, 9), n_trials=2, random_state=0)
        >>> print(search.fit(np.arange(20) % 2).update([1, 0]).best_estimator_.cutoff_)
        21
        """
        self._best().update(y, X)
        return self

    def score(self, y: Any, X: Any = None) -> float:
        """`best_estimator_.score`: minus the RMSSE over the continuation `y`, whatever the metric.

        Examples
        --------
        >>> from fracts import WindowAverage
        >>> search = FracSearch(WindowAverage(2, 9), n_trials=2, random_state=0)
        >>> search.fit(np.arange(20) % 2).score([0, 1, 0]) <= 0
        True
        """
        return self._best().score(y, X)

    def _conclude(self, study: optuna.Study, objective: Objective, y: Any, X: Any) -> None:
        """Assign what was found, last of all."""
        from fracts.objective import configured
        from fracts.parsimony import chosen
        from fracts.results import results

        found = results(study, objective.space, objective.validation.n_splits)
        if not np.isfinite(found["mean_test_score"]).any():
            raise ValueError(
                f"no trial of the study succeeded. The last error was: {objective.error} The logger `fracts` "
                "has a record of each."
            ) from objective.error
        best = chosen(found, self.estimator, self.selection)
        model = None
        if self.refit:
            model = configured(self.estimator, found["params"][best], objective.seed).fit(y, X)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.study_, self.cv_results_ = study, found
        self.best_index_, self.best_params_ = best, found["params"][best]
        self.best_score_ = float(found["mean_test_score"][best])
        self.n_windows_, self.step_ = objective.validation.n_windows, objective.validation.step
        if model is not None:
            self.best_estimator_ = model

    def _best(self) -> Forecaster:
        if not hasattr(self, "study_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError("The best was not fitted, since refit=False. Fit with refit=True.")
        return self.best_estimator_
