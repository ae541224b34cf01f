"""The commands of `python -m fracts`.

One idea: a job is the same call on every machine. Told to end, by SIGTERM or the keyboard, a worker finishes
its trial first; told twice, it ends at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import click

import fracts
from fracts.base import Forecaster
from fracts.names import Names
from fracts.search import FracSearch
from fracts.table_files import read_table

MODELS = ("FracForecaster", "FracRidge", "ARFIMA", "ETS", "GARCH")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(fracts.__version__, prog_name="fracts")
def main() -> None:
    """Time-series forecasting with a memory that decays as a power law."""


@main.command()
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV or Parquet: long (unique_id, ds, y) or wide (stamps first, then a column a series).",
)
@click.option("--horizon", required=True, type=click.IntRange(1), help="Steps to forecast.")
@click.option(
    "--storage",
    help="Where the study is kept: a path (a journal file) or a URL such as sqlite:///study.db or "
    "postgresql+psycopg://host/base. Workers with the same one search together. [default: memory]",
)
@click.option("--study", default="fracts", show_default=True, help="Name of the study in the storage.")
@click.option("--trials", type=click.IntRange(1), help="Trials that this worker runs.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Seconds to begin trials in.")
@click.option("--model", type=click.Choice(MODELS), default=MODELS[0], show_default=True)
@click.option(
    "--metric",
    default="mase",
    show_default=True,
    help="mase, rmsse, mae, rmse, crps, or a quantile such as pinball_0.9.",
)
@click.option(
    "--windows", type=click.IntRange(1), help="Forecasts to score a trial on. [default: a fifth of the rows]"
)
@click.option("--step", type=click.IntRange(1), help="Rows between two forecasts. [default: the horizon]")
@click.option(
    "--leave-out",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Stamps at the end that are kept for a test: no trial sees them.",
)
@click.option("--id-col", default="unique_id", show_default=True, help="Column of the series.")
@click.option("--time-col", default="ds", show_default=True, help="Column of the stamps.")
@click.option("--target-col", default="y", show_default=True, help="Column of the values.")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Fit the best on all rows not left out, and write it here.",
)
@click.option("--seed", type=click.IntRange(0), help="The same seed and one worker give the same trials.")
@click.option(
    "--heartbeat",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Seconds between signs of life; a worker that misses four is taken for dead, its trial run again.",
)
@click.option("--quiet", is_flag=True, help="Show no line while trials run.")
def search(
    data: Path,
    horizon: int,
    storage: str | None,
    study: str,
    trials: int | None,
    timeout: float | None,
    model: str,
    metric: str,
    windows: int | None,
    step: int | None,
    leave_out: int,
    id_col: str,
    time_col: str,
    target_col: str,
    save: Path | None,
    seed: int | None,
    heartbeat: int,
    quiet: bool,
) -> None:
    """Search the parameters of a model: run a worker.

    Start as many workers as you like, on any machines that reach the storage; each runs its own number of
    trials and learns from those of all. Killed, a worker loses only its trial, which another runs again. Told
    to end (SIGTERM, Ctrl-C), it finishes its trial. Started again, it goes on.
    """
    if trials is None and timeout is None:
        raise click.UsageError("A search does not end by itself: give --trials 50, say, or --timeout.")
    if save is not None and not save.absolute().parent.is_dir():
        raise click.UsageError(f"There is no folder {save.parent} to save {save.name} in. Make it first.")
    estimator: Forecaster = getattr(fracts, model)(horizon)
    searched = FracSearch(
        estimator,
        n_trials=trials,
        timeout=timeout,
        storage=storage,
        study_name=study,
        n_windows=windows,
        step=step,
        metric=metric,
        refit=save is not None,
        heartbeat=heartbeat,
        callback=_until_told_to_end(),
        random_state=seed,
        verbose=0 if quiet else 1,
    )
    try:
        table = read_table(data, Names(id_col, time_col, target_col))
        searched.fit(_without_last(table, leave_out))
    except (TypeError, ValueError, ImportError, OSError) as error:
        raise click.ClickException(str(error)) from error
    found = searched.study_.best_trial
    click.echo(f"best {metric} {found.value:.6g}, trial {found.number} of {len(searched.study_.trials)}")
    for name, value in searched.best_params_.items():
        click.echo(f"  {name} = {value!r}")
    if save is not None:
        searched.best_estimator_.save(save)
        click.echo(f"fitted and saved as {save}")


def _without_last(table: Any, n_stamps: int) -> Any:
    """A long or wide `table` without its last stamps; ValueError where nothing is left."""
    stamps = table["ds"] if "ds" in table.columns else table.index.to_series()
    every = stamps.drop_duplicates().sort_values()
    if n_stamps >= len(every):
        raise ValueError(f"--leave-out {n_stamps} leaves none of the {len(every)} stamps. Leave out fewer.")
    return table[stamps <= every.iloc[-1 - n_stamps]]


def _until_told_to_end() -> Callable[..., bool]:
    """A callback that is True once this process was told to end."""
    told = []

    def tell(number: int, frame: FrameType | None) -> None:
        told.append(number)
        signal.signal(number, signal.SIG_DFL)
        print("\nending after this trial; tell me again to end at once", file=sys.stderr, flush=True)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, tell)
    return lambda study, trial: bool(told)
