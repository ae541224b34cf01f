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
from heavy_tail import checked, held_out, new_parser, origin, write_rows
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


def on_probe(variant, seed, options):
    """Accuracies at `probe.LENGTHS`."""
    task = probe.Task("signed", EXPONENT)
    names = {"linear_value": variant.odd_value, "even_gates": variant.even_gates}
    favours = frozenset(name for name, given in names.items() if given)
    make = variant.make(probe.WIDTH, N_HEADS["probe"])
    draws = torch.Generator().manual_seed(seed)
    model = probe.Probe("signed", lambda _, generator: make(generator), favours, draws).to(options.device)
    drawn = task.draw(options.steps * probe.BATCH, probe.TRAINED, (3, seed))
    data = tuple(x.to(options.device) for x in drawn)
    rate = options.learning_rate
    probe.train([model], [data], learning_rate=rate, steps=options.steps, compiled=False)
    tested = (x.to(options.device) for x in held_out(task, options.sequences, "test"))
    found = probe.accuracies(model, *tested, probe.LENGTHS, compiled=False)
    return dict(zip(probe.LENGTHS, found, strict=True))


def on_series(series, variant, seed, options):
    """The ratio of errors."""
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
            found, rows = [], []
            for seed in options.seeds:
                start = time.perf_counter()
                if data == "probe":
                    figures = on_probe(VARIANTS[name], seed, options)
                else:
                    figures = on_series(SERIES[data](seed), VARIANTS[name], seed, options)
                seconds = round(time.perf_counter() - start, 1)
                common = {
                    **origin(options),
                    "data": data,
                    "variant": name,
                    "steps": options.steps,
                    "learning_rate": options.learning_rate,
                    "seed": seed,
                    "seconds": seconds,
                }
                rows += [{**common, "figure": key, "value": round(x, 5)} for key, x in figures.items()]
                found.append(list(figures.values()))
            table = np.array(found)
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
