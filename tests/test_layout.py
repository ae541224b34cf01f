"""The rooms are found under one name only, with or without symbolic links, and the door is light."""

import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import fracts

ROOT = Path(fracts.__file__).parents[1]
ROOMS = ("kernels", "datasets")
HEAVY = {"torch", "lightning", "pandas", "polars", "sklearn", "scipy", "matplotlib", "statsmodels", "optuna"}

in_a_checkout = pytest.mark.skipif(
    not all((ROOT / room).is_dir() for room in ROOMS),
    reason="needs the checkout: its rooms lie beside fracts/",
)


def python(code, folder, path=""):
    environment = os.environ | {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@in_a_checkout
@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imported_by_its_bare_name_from_the_root_says_what_to_do(room):
    result = python(f"import {room}", ROOT)
    assert result.returncode != 0
    assert f"ImportError: This folder is `fracts.{room}`" in result.stderr
    assert "python -P" in result.stderr


@in_a_checkout
def test_a_checkout_without_symbolic_links_finds_its_rooms(tmp_path):
    shutil.copytree(
        ROOT / "fracts", tmp_path / "fracts", ignore=shutil.ignore_patterns(*ROOMS, "__pycache__")
    )
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / "fracts" / room).write_text(f"../{room}")  # what git leaves where links are off
    code = (
        "from importlib.util import find_spec; import fracts.datasets;"
        "print(fracts.datasets.__file__, find_spec('fracts.kernels').origin, len(fracts.datasets.load_co2()))"
    )
    result = python(code, tmp_path, path=tmp_path)
    rooms = [str(tmp_path / room / "__init__.py") for room in reversed(ROOMS)]
    assert result.stdout.split() == [*rooms, "2284"], result.stderr


def test_importing_fracts_loads_no_heavy_library_and_takes_under_300_milliseconds(tmp_path):
    code = (
        "import sys, time; start = time.perf_counter(); import fracts;"
        "print(time.perf_counter() - start, *{name.split('.')[0] for name in sys.modules})"
    )
    runs = [python(code, tmp_path, path=ROOT).stdout.split() for _ in range(5)]
    assert all("fracts" in loaded for _, *loaded in runs)
    assert HEAVY.isdisjoint(runs[0][1:])
    assert statistics.median(float(seconds) for seconds, *_ in runs) < 0.3
