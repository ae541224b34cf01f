"""Which recipe of training lifts the network on M4 Hourly? On validation time alone (the last 48 training hours)."""

import argparse
import copy
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.multiprocessing as mp

import fracts.forecaster as ff
from fracts import FracForecaster
from fracts.cuts import Cuts
from fracts.series import Panel
from fracts.windows import RandomWindows, Rest, held_out_windows

warnings.simplefilter("ignore")


def data(step):
    folder = os.environ.get("FRACTS_DATA", "shared/data")
    f = pd.read_csv(Path(folder) / "m4_hourly.csv.gz")
    f = f[f.split == "train"]
    left = f.groupby("unique_id").cumcount(ascending=False)
    ids = f.unique_id.unique()[::step]
    f, left = f[f.unique_id.isin(ids)], left[f.unique_id.isin(ids)]
    columns = ["unique_id", "ds", "y"]
    return f.loc[left >= 48, columns], f.loc[left < 48, columns]


def score(train, test, predicted):
    p = predicted.merge(test, on=["unique_id", "ds"])
    scale = train.groupby("unique_id").y.apply(lambda v: np.abs(v.values[24:] - v.values[:-24]).mean())
    error = (p.p - p.y).abs()
    mase = (error.groupby(p.unique_id).mean() / scale).mean()
    smape = (200 * error / (p.p.abs() + p.y.abs())).groupby(p.unique_id).mean().mean()
    return smape, mase, (smape / 18.383 + mase / 2.395) / 2


def trained(job):
    name, model, options, device, train, test, out = job
    torch.set_num_threads(1)
    start = time.time()
    whole, flat = options.pop("whole", False), options.pop("flat", False)
    n_batches, heads = options.pop("n_batches", None), options.pop("heads", 4)
    patience = options.pop("patience", 3)
    seed = options.pop("seed", 0)
    model = copy.copy(model)
    model.set_params(n_layers=2, **options)
    ff.MAX_SEASONAL_HEADS = heads
    import fracts.training as tr

    tr.PATIENCE = patience
    panel = model._panel_kept
    model._rows = ff.typical_rows(panel)
    network = model._new_network(torch.Generator().manual_seed(seed))
    rest = Rest.of(panel, model._path)
    if flat:
        rest.weight[:] = 1.0
    ends = Cuts.of(panel, n_groups=1).ends[0]
    begin, stop = np.searchsorted(panel.times, ends[[0, -1]], side="right")
    held = held_out_windows(rest, int(stop), model.window)
    if whole:
        stop = panel.times.size - 1
    length = min(model.window, int(stop))
    batches = RandomWindows(rest, int(begin), int(stop), length, max(1, ff.TOKENS // length), seed + 1)
    if n_batches:
        batches.n_batches = n_batches
    history, kept = tr.train(
        network,
        batches,
        held,
        max_epochs=model.max_epochs,
        learning_rate=model.learning_rate,
        device=device,
        trainer=None,
        verbose=0,
    )
    model.network_ = network
    took = time.time() - start
    model._copy_weights()
    state = model._empty_state(len(panel.values))
    seen = ~np.isnan(panel.values)
    last = panel.times.size - seen[:, ::-1].argmax(1)
    found = []
    for end in np.unique(last):
        at = np.flatnonzero(last == end)
        part = Panel(panel.values[at, :end], panel.times[:end], panel.covariates[at, :end])
        after = model._advance({k: v[at] for k, v in state.items()}, part)
        after["ahead"] = np.zeros((len(at), 48, 0))
        q = model._forecast(after, 48, np.array([0.5])).quantiles[..., 0]
        values = model._transform.back(q)
        for i, row in zip(at, values, strict=True):
            stamps = test.ds[test.unique_id == model.series_ids_[i]].to_numpy()
            found.append(pd.DataFrame({"unique_id": model.series_ids_[i], "ds": stamps, "p": row}))
    predicted = pd.concat(found)
    predicted.to_csv(out / f"{name}.csv".replace(" ", "_"), index=False)
    told = " ".join(f"{e.held_out_loss:.4f}" for e in history)
    line = f"{name}: sMAPE %.3f MASE %.3f OWA %.4f" % score(train, test, predicted)
    line += f" kept {kept} {took:.0f} s train {history[-1].train_loss:.4f} held-out {told}"
    print(line, flush=True)
    with (out / "lines.txt").open("a") as file:
        file.write(line + "\n")


def base(args):
    name, options, pooled, train = args
    torch.set_num_threads(1)
    keep = {}
    if pooled:
        ff.is_pooled = lambda *_: True
    old = FracForecaster._fit

    def fit(self, panel, clock):
        keep["panel"] = panel
        old(self, panel, clock)

    FracForecaster._fit = fit
    model = FracForecaster(48, season_lengths=(24, 168), n_layers=0, device="cpu", **options).fit(train)
    model._panel_kept = keep["panel"]
    return name, model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--jobs", default="all")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    train, test = data(asked.step)
    bases = [
        ("own log", {"transform": "log"}, False, train),
        ("own raw", {}, False, train),
        ("pool log", {"transform": "log", "anchor": "season"}, True, train),
    ]
    grid = [
        ("own log", "plain", {}),
        ("own log", "16 batches", {"n_batches": 16}),
        ("own log", "flat", {"flat": True}),
        ("own log", "20 epochs", {"max_epochs": 20, "patience": 20}),
        ("own log", "lr1e-3", {"learning_rate": 1e-3}),
        ("own log", "heads 8", {"heads": 8}),
        ("own log", "width 128", {"width": 128}),
        ("own log", "whole", {"whole": True}),
        ("own log", "whole seed 1", {"whole": True, "seed": 1}),
        ("own raw", "plain", {}),
        ("own raw", "whole", {"whole": True}),
        ("pool log", "plain", {}),
        ("pool log", "whole", {"whole": True}),
        ("pool log", "20 epochs whole", {"max_epochs": 20, "patience": 20, "whole": True}),
    ]
    if asked.jobs != "all":
        grid = [grid[int(i)] for i in asked.jobs.split(",")]
        bases = [b for b in bases if b[0] in {g[0] for g in grid}]
    context = mp.get_context("spawn")
    start = time.time()
    with context.Pool(len(bases)) as pool:
        models = dict(pool.map(base, bases))
    for name, model in models.items():
        panel = model._panel_kept
        print(name, model._path.penalty, model._path.memory.blended, f"{time.time() - start:.0f} s", flush=True)
        del panel
        linear = model.predict().rename(columns={"FracForecaster": "p"})
        line = f"{name} linear: sMAPE %.3f MASE %.3f OWA %.4f" % score(train, test, linear)
        print(line, flush=True)
        with (asked.out / "lines.txt").open("a") as file:
            file.write(line + "\n")
    jobs = [(f"{b} {n}", models[b], o, asked.device, train, test, asked.out) for b, n, o in grid]
    running = [context.Process(target=trained, args=(job,)) for job in jobs]
    for process in running:
        process.start()
    for process in running:
        process.join()


if __name__ == "__main__":
    main()
