"""Raw rows of a benchmark, appended to `results/<benchmark>.csv` with what tells two runs apart."""

import csv
import datetime
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import scipy

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def record(benchmark, rows, folder=RESULTS):
    """Append `rows` (dicts of the same keys) to the CSV in `folder`, unless called with `--no-record`."""
    if "--no-record" in sys.argv:
        return
    run = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "chip": chip(),
        "python": platform.python_version(),
        **{package.__name__: package.__version__ for package in (np, scipy, pd)},
    }
    path = folder / f"{benchmark}.csv"
    path.parent.mkdir(exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [*run, *rows[0]])
        if fresh:
            writer.writeheader()
        writer.writerows({**run, **row} for row in rows)


def chip():
    """Name of the processor, as far as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    told = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in told if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor() or platform.machine()


def commit():
    """Short name of the commit, with a plus where the tree differs from it."""
    if not shutil.which("git"):
        return "unknown"
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or "unknown"
