"""Serve forecasts over HTTP: post an observation, get the next day; nothing acknowledged is lost.

    python examples/serve.py folder            # then, from another terminal:
    curl -X POST localhost:8000/series/north -H 'Content-Type: application/json' \
         -d '{"ds": "2019-01-01T00:00", "y": 820}'
    curl 'localhost:8000/series/north/forecast?horizon=3&level=90'

Weights are fitted once, on a year and a half of road traffic, and are the same for all series; each series
has a state of its own, in a file of its own. An observation is acknowledged when the file with it is on the
disk, so a server that is killed at any moment goes on from there. One process serves; its threads share the
series.
"""

import argparse
import copy
import threading
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import pandas as pd
import uvicorn
from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel

from fracts import FracRidge
from fracts.datasets import load_traffic_volume

DAY = 24  # hours
HISTORY = 13_128  # hours of traffic to fit on


class Observation(BaseModel):
    """One value of a series, at the hour `ds`; null where nothing was measured."""

    ds: datetime
    y: float | None


class Series:
    """All series that were ever posted: in memory those in use, on disk all of them."""

    def __init__(self, model: FracRidge, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.held: dict[str, FracRidge] = {}
        self.locks: dict[str, threading.Lock] = {}
        self.lock = threading.Lock()

    def lock_of(self, name: str) -> threading.Lock:
        with self.lock:
            return self.locks.setdefault(name, threading.Lock())

    def find(self, name: str) -> FracRidge | None:
        if name not in self.held and self.file_of(name).exists():
            self.held[name] = FracRidge.load(self.file_of(name))
        return self.held.get(name)

    def learn(self, name: str, seen: pd.Series) -> FracRidge:
        """The model of a series after what was `seen`, which is on disk by then."""
        with self.lock_of(name):
            known = self.find(name)
            # A copy moves on: where the disk refuses, what is held stays what is on the disk.
            moved = self.model.apply(seen) if known is None else copy.copy(known).update(seen)
            moved.save(self.file_of(name))
            self.held[name] = moved
            return moved

    def file_of(self, name: str) -> Path:
        return self.folder / f"{quote(name, safe='')}.safetensors"


def make_app(series: Series) -> FastAPI:
    app = FastAPI(title="Forecasts of hourly series")

    @app.post("/series/{name}")
    def learn(name: str, observation: Observation) -> dict[str, Any]:
        seen = pd.Series([observation.y], pd.DatetimeIndex([observation.ds]), dtype=float, name=name)
        try:
            return {"cutoff": series.learn(name, seen).cutoff_}
        except (TypeError, ValueError) as error:  # late, twice, off the hour: the message says which
            raise HTTPException(409, str(error)) from error

    @app.get("/series/{name}/forecast")
    def forecast(
        name: str, horizon: Annotated[int, Query(ge=1, le=7 * DAY)] = DAY, level: float = 90
    ) -> dict[str, Any]:
        with series.lock_of(name):
            known = series.find(name)
        if known is None:
            raise HTTPException(404, f"no observation of {name!r} was ever posted")
        try:
            table = known.predict(horizon, level=level)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        columns = zip(("y", "lo", "hi"), table, strict=True)
        return {"cutoff": known.cutoff_, "ds": list(table.index)} | {k: list(table[c]) for k, c in columns}

    return app


def fitted(path: Path) -> FracRidge:
    """The model in the file at `path`, fitted now if there is none."""
    if not path.exists():
        FracRidge(DAY).fit(load_traffic_volume()[:HISTORY].rename("traffic")).save(path)
    return FracRidge.load(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where weights and series are kept")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    (arguments.folder / "series").mkdir(parents=True, exist_ok=True)
    series = Series(fitted(arguments.folder / "weights.safetensors"), arguments.folder / "series")
    uvicorn.run(make_app(series), host="127.0.0.1", port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
