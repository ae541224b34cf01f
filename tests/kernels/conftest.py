"""Inputs, tolerances and the yardstick shared by the tests of the scan."""

import pytest
import torch
from torch import Tensor

# RMS ratio to the float64 loop of the same rounded inputs. float32 rounds by 6e-8: outputs and plain
# gradients are sums of a few dozen such roundings. The gradients of step and rates sum over all modes, or
# over all tokens, terms that cancel, so they get more room. float64 rounds by 1e-16 and needs no distinction.
TOLERANCE = {
    torch.float32: {"y": 2e-6, "state": 2e-6, "step": 2e-5, "rates": 1e-4, "other gradients": 4e-6},
    torch.float64: {"y": 1e-12, "state": 1e-12, "step": 1e-12, "rates": 1e-12, "other gradients": 1e-12},
}


@pytest.fixture(scope="session")
def tolerance():
    """Allowed RMS ratio, by dtype and by what is compared."""
    return TOLERANCE


@pytest.fixture(scope="session")
def off():
    """RMS ratio of an error to its truth: ||got - want|| / ||want||."""

    def ratio(got: Tensor, want: Tensor) -> float:
        got, want = got.detach().double(), want.detach().double()
        assert got.shape == want.shape
        error = (got - want).norm()
        return float(error if error == 0 else error / want.norm())

    return ratio


@pytest.fixture(scope="session")
def tokens():
    """A drawer of arguments for `frac_scan`, by name."""

    def draw(time, *, batch=2, heads=3, modes=5, width=4, dtype=torch.float64, seed=0, leap=100.0):
        """One step in five is zero, one in ten is `leap`; each head has its own rates, the last one zero."""
        random = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(*shape, generator=random, dtype=torch.float64)

        step, kind = (torch.rand(2, batch, time, heads, generator=random, dtype=torch.float64)).unbind()
        step = torch.where(kind < 0.2, 0.0, torch.where(kind > 0.9, leap, step))
        rates = 0.3 ** torch.arange(heads * modes, dtype=torch.float64).reshape(modes, heads).T
        if modes > 1:
            rates[:, -1] = 0.0
        inputs = {
            "c": normal(batch, time, heads, modes),
            "b": normal(batch, time, heads, modes),
            "step": step,
            "rates": rates,
            "v": normal(batch, time, heads, width),
            "initial_state": normal(batch, heads, modes, width),
        }
        return {name: x.to(dtype) for name, x in inputs.items()}

    return draw
