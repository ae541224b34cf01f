"""What is each part of FRAC worth, on the heavy-tail probe and on one-step forecasts?

    python examples/paper/ablations.py --data probe --device cuda
    FRACTS_DATA=folder python examples/paper/ablations.py --data arfima volatility

One layer, with one part taken out or put back at a time (`variants.py`), trained from the same seeds. On the
probe (signed events, exponent 0.3) the figure is the share of right signs at each length, trained at 512; on
series the mean squared error of one-step forecasts over that of a rival that is no network: the exact
predictor for ARFIMA(0, 0.4, 0), HAR for realised volatility. Raw rows go to `--out`.
"""

import time
from dataclasses import dataclass

import numpy as np
import one_step
import probe
import torch
from frac import Frac
from heavy_tail import checked, held_out, new_parser, origin, training_data, write_rows
from variants import CHANGES

N_HEADS, EXPONENT = {"probe": 8, "series": 4}, 0.3
SERIES = {"arfima": one_step.arfima, "volatility": one_step.volatility}
PERIODS = (5.0, 21.0)  # steps: a week and a month of business days


@dataclass(frozen=True)
class Variant:
    """A layer and what it is given."""

    change: str | None = None
    n_modes: int = 16
    periods: tuple[float, ...] = ()
    odd_value: bool = True
    even_gates: bool = True

    def make(self, width, n_heads):
        change = CHANGES[self.change] if self.change else None
        return lambda generator: Frac(
            width,
            n_heads=n_heads,
            n_modes=self.n_modes,
            periods=self.periods,
            change=change,
            generator=generator,
        )


VARIANTS = {
    "as it is": Variant(),
    **{name: Variant(name) for name in CHANGES},
    "M = 8": Variant(n_modes=8),
    "M = 32": Variant(n_modes=32),
    "values of normed features": Variant(odd_value=False),
    "gates that see the sign": Variant(even_gates=False),
    "seasonal heads": Variant(periods=PERIODS),
}


def on_probe(variant, options):
    """Accuracies at `probe.LENGTHS` of each seed, trained side by side."""
    task = probe.Task("signed", EXPONENT)
    names = {"linear_value": variant.odd_value, "even_gates": variant.even_gates}
    favours = frozenset(name for name, given in names.items() if given)
    make = variant.make(probe.WIDTH, N_HEADS["probe"])
    models, data = [], []
    for seed in options.seeds:
        draws = torch.Generator().manual_seed(seed)
        model = probe.Probe("signed", lambda _, generator: make(generator), favours, draws)
        models.append(model.to(options.device))
        drawn = training_data(task, seed, options.steps)
        data.append(tuple(x.to(options.device) for x in drawn))
    rate = options.learning_rate
    probe.train(models, data, learning_rate=rate, steps=options.steps, compiled=False)
    tested = [x.to(options.device) for x in held_out(task, options.sequences, "test")]
    found = (probe.accuracies(model, *tested, probe.LENGTHS, compiled=False) for model in models)
    return [dict(zip(probe.LENGTHS, each, strict=True)) for each in found]


def on_series(make_series, variant, options):
    """The ratio of errors of each seed."""
    return [_error_ratio(make_series(seed), variant, seed, options) for seed in options.seeds]


def _error_ratio(series, variant, seed, options):
    draws = torch.Generator().manual_seed(seed)
    model = one_step.OneStep(
        variant.make(one_step.WIDTH, N_HEADS["series"]),
        odd_value=variant.odd_value,
        even_gates=variant.even_gates,
        generator=draws,
    )
    one_step.train(model, series, learning_rate=options.learning_rate, steps=options.steps, seed=seed)
    return {"ratio": one_step.error_ratio(model, series)}


def main():
    options = parsed()
    torch.backends.cuda.matmul.allow_tf32 = False
    for data in options.data:
        figure = "right signs at each length" if data == "probe" else "squared error over the rival's"
        print(f"\n{data}: {figure}, mean of {len(options.seeds)} seeds (worst)")
        for name in options.variants:
            start = time.perf_counter()
            if data == "probe":
                found = on_probe(VARIANTS[name], options)
            else:
                found = on_series(SERIES[data], VARIANTS[name], options)
            common = {
                **origin(options),
                "data": data,
                "variant": name,
                "steps": options.steps,
                "learning_rate": options.learning_rate,
            }
            seconds = round((time.perf_counter() - start) / len(options.seeds), 1)
            rows = [
                {**common, "seed": seed, "seconds": seconds, "figure": key, "value": round(x, 5)}
                for seed, figures in zip(options.seeds, found, strict=True)
                for key, x in figures.items()
            ]
            table = np.array([list(figures.values()) for figures in found])
            worst = table.min(0) if data == "probe" else table.max(0)
            cells = [f"{m:.4f} ({w:.4f})" for m, w in zip(table.mean(0), worst, strict=True)]
            print(f"{name:<34} " + "  ".join(cells), flush=True)
            write_rows(rows, options.out)


def parsed():
    parser = new_parser(__doc__)
    parser.add_argument("--data", nargs="*", choices=["probe", *SERIES], default=["probe"])
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--learning-rate", type=float, default=4e-3)
    return checked(parser)


if __name__ == "__main__":
    main()
