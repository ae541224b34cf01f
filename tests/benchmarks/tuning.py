"""Autotuned kernels of others, compiled by many processes at once before one process tunes and times them.

Triton keeps what it compiled on disk. So every worker runs the same calls with its share of the
configurations of each kernel, and the process that measures finds them all there.
"""

import json
import os
import random
import subprocess
import sys
import time

from graph_timer import CUDA
from triton.runtime.autotuner import Autotuner
from triton.testing import do_bench

WORKERS = max(1, (os.cpu_count() or 1) - 2) if CUDA else 0

_prune = Autotuner.prune_configs


def _once(_, call, quantiles):
    """Run, and tell nothing of the time."""
    call()
    return [1.0] * len(quantiles)


def search(configs: int) -> None:
    """Tune over at most `configs` of each kernel's configurations, drawn once for all; 0: all.

    Without a GPU the first that is drawn is taken.
    """
    configs = configs if CUDA else 1

    def some(tuner, arguments):
        every = _prune(tuner, arguments)
        # Drawn, for a stride through a product of options could see one value of some option only.
        return random.Random(0).sample(every, configs) if 0 < configs < len(every) else every

    def timed(_, call, quantiles):
        return do_bench(call, warmup=4, rep=12, quantiles=quantiles)

    Autotuner.prune_configs, Autotuner.do_bench = some, timed if CUDA else _once


class Share:
    """The configurations of worker `number` of `workers`: run once each, compared never."""

    def __init__(self, number: int, workers: int) -> None:
        self.number, self.tuners = number, set()
        searched = Autotuner.prune_configs

        def mine(tuner, arguments):
            self.tuners.add(tuner)
            every = searched(tuner, arguments)
            return every[number::workers] or every[:1]

        Autotuner.prune_configs, Autotuner.do_bench = mine, _once

    def forget(self) -> None:
        """Let all run again on the next inputs."""
        for tuner in self.tuners:
            tuner.cache.clear()


def compile_apart(workers: int, seconds: float) -> dict[str, str]:
    """Run this script as `workers` workers; what failed in any of them, by name."""
    command = [sys.executable, *sys.argv, "--worker"]
    running = [
        subprocess.Popen(
            [*command, f"{i}/{workers}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for i in range(workers)
    ]
    end = time.monotonic() + seconds
    failed: dict[str, str] = {}
    for process in running:
        try:
            out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        lines = out.splitlines()
        if process.returncode == 0 and lines:
            failed |= json.loads(lines[-1])
        else:
            print(f"a worker ended with {process.returncode}: {(err.splitlines() or [''])[-1]}", flush=True)
    return failed
