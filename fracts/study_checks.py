"""Checks of a study: the journal file or database that keeps it, its name, its sampler and its pruner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError


def check_study(name: Any, sampler: Any, pruner: Any) -> None:
    """TypeError unless a name, an Optuna sampler and an Optuna pruner, or None for any of them."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"study_name must be None or a name, got {name!r}.")
    if sampler is not None and not isinstance(sampler, BaseSampler):
        raise TypeError(
            f"sampler must be None or an Optuna sampler, got {sampler!r}. Give "
            "optuna.samplers.RandomSampler(), say; None is TPE."
        )
    if pruner is not None and not isinstance(pruner, BasePruner):
        raise TypeError(
            f"pruner must be None or an Optuna pruner, got {pruner!r}. Give optuna.pruners.NopPruner(), say, "
            "which ends no training."
        )


def check_journal(path: Path) -> None:
    """OSError unless there is a folder for the journal, ValueError where the file is no journal."""
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {path.parent} to keep the study {path.name} in. Make it first."
        )
    if path.is_dir():
        raise IsADirectoryError(
            f"storage {path} is a folder. Give a file in it, such as {path / 'study.log'}."
        )
    if not path.exists():
        return
    with path.open("rb") as file:
        begin = file.read(2)
    if begin not in (b"", b'{"'):
        raise ValueError(
            f"storage {path} is no journal of a study. Give the path of a new file, or a URL such as "
            f"sqlite:///{path}."
        )


def check_url(url: str) -> URL:
    """`url` in parts; ValueError for one that cannot be read, ImportError without its driver.

    Examples
    --------
    >>> check_url("postgresql+psycopg://me:secret@host/base")
    postgresql+psycopg://me:***@host/base
    """
    try:
        parts = make_url(url)
        parts.get_dialect().import_dbapi()
    except (ArgumentError, NoSuchModuleError) as error:
        raise ValueError(
            f"storage {url!r} is no URL of a database that is known. Give one such as sqlite:///study.db or "
            "postgresql+psycopg://host/base, or the path of a journal file."
        ) from error
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the database {parts} needs the package {error.name!r}, which is not installed. Install it, or "
            "name another driver in the URL."
        ) from error
    return parts
