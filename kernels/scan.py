"""The door to the scan: what comes in is checked here, what goes out is what `scan_reference.py` defines.

The one idea: a bank of M exponential memories per head, forgetting over real elapsed time (a step times a
rate), written and read by the token. README.md has the mathematics.
"""

import math

import torch
from torch import Tensor

from fracts.kernels.scan_chunked import scan_chunked
from fracts.kernels.step import scan_step


def frac_scan(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Outputs and final state of the fractional scan over T tokens, differentiable in every argument.

        H_t = exp(-step_t * rates) H_{t-1} + b_t v_t^T,    y_t = c_t^T H_t

    Parameters
    ----------
    c, b : [B, T, H, M], read and write weights of M modes in H heads. T may be 0; M and P start at 1.
    step : [B, T, H], >= 0, time elapsed *before* the token, in the unit that `rates` is per.
    rates : [H, M], >= 0, decay rates; 0 is the tail mode, a pure accumulator.
    v : [B, T, H, P], values.
    initial_state : [B, H, M, P], zeros if None.

    Returns
    -------
    y [B, T, H, P] and final state [B, H, M, P], in the one dtype (float32 or float64) of all inputs.

    Raises
    ------
    TypeError
        An input is no tensor, or the dtypes are neither all float32 nor all float64.
    ValueError
        Shapes or devices disagree, or a step or rate is negative or not finite.

    Notes
    -----
    The recurrence of a linear state space model with a rank-1 gate; chunked in the manner of the state space
    duality of Dao and Gu (2024, arXiv 2405.21060), with one decay for each mode.

    Examples
    --------
    >>> impulse = torch.zeros(1, 3, 1, 1)
    >>> impulse[0, 0] = 1.0
    >>> ones = torch.ones(1, 3, 1, 1)
    >>> y, state = frac_scan(c=ones, b=ones, step=ones[..., 0], rates=torch.ones(1, 1), v=impulse)
    >>> y.flatten()
    tensor([1.0000, 0.3679, 0.1353])
    """
    inputs = {"c": c, "b": b, "step": step, "rates": rates, "v": v}
    if initial_state is not None:
        inputs["initial_state"] = initial_state
    _check(inputs, "BTH")
    if initial_state is None:
        initial_state = v.new_zeros(v.shape[0], *c.shape[2:], v.shape[-1])
    if v.is_cuda and v.dtype == torch.float32:
        from fracts.kernels.scan_triton import scan_triton  # where there is no GPU there need be no triton

        return scan_triton(c, b, step, rates, v, initial_state)
    return scan_chunked(c, b, step, rates, v, initial_state)


def frac_step(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Output and new state of one token: `frac_scan` without the time axis. `state` itself is left as it was.

    Parameters
    ----------
    c, b : [B, H, M].  step : [B, H].  rates : [H, M].  v : [B, H, P].  state : [B, H, M, P].

    Returns
    -------
    y [B, H, P] and the new state [B, H, M, P].

    Raises
    ------
    TypeError, ValueError
        As `frac_scan`.

    Notes
    -----
    Every step rounds the state once. Under a constant input these roundings add up, in the worst case to half
    a unit in the last place times the timescale (README.md). Carry a long stream in float64.

    Examples
    --------
    >>> one = torch.ones(1, 1, 1)
    >>> y, state = frac_step(one, one, one[..., 0], torch.ones(1, 1), one, torch.ones(1, 1, 1, 1))
    >>> y
    tensor([[[1.3679]]])
    """
    _check({"c": c, "b": b, "step": step, "rates": rates, "v": v, "state": state}, "BH")
    return scan_step(c, b, step, rates, v, state)


def _check(inputs: dict[str, Tensor], axes: str) -> None:
    for name, x in inputs.items():
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name} is a {type(x).__name__}. It must be a torch tensor. Use `torch.as_tensor({name})`."
            )
    _check_kind(inputs)
    _check_shapes(inputs, axes)
    _check_range("step", inputs["step"])
    _check_range("rates", inputs["rates"])


def _check_kind(inputs: dict[str, Tensor]) -> None:
    v = inputs["v"]
    if v.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"v is {v.dtype}. The scan runs in float32 or float64. Use `v.float()`.")
    for name, x in inputs.items():
        if x.dtype != v.dtype:
            raise TypeError(
                f"{name} is {x.dtype}, v is {v.dtype}. All need one dtype. Use `{name}.to(v.dtype)`."
            )
        if x.device != v.device:
            raise ValueError(
                f"{name} is on {x.device}, v on {v.device}. All need one device. Use `{name}.to(v.device)`."
            )


def _check_shapes(inputs: dict[str, Tensor], axes: str) -> None:
    layouts = {"c": axes + "M", "v": axes + "P", "b": axes + "M", "step": axes, "rates": "HM"}
    layouts |= {name: "BHMP" for name in ("initial_state", "state") if name in inputs}
    sizes: dict[str, int] = {}
    for name, layout in layouts.items():
        shape = list(inputs[name].shape)
        if len(shape) == len(layout):
            for axis, size in zip(layout, shape, strict=True):
                sizes.setdefault(axis, size)
        expected = [sizes.get(axis) for axis in layout]
        if shape != expected:
            sought = ", ".join(axis if (n := sizes.get(axis)) is None else f"{axis}={n}" for axis in layout)
            raise ValueError(f"{name} has shape {shape}. It must be [{sought}]. Reshape or transpose it.")
    if sizes["M"] == 0 or sizes["P"] == 0:
        raise ValueError(f"M={sizes['M']} modes and P={sizes['P']} channels. Give at least one of each.")


def _check_range(name: str, x: Tensor) -> None:
    if x.numel() == 0 or (x.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    low, high = x.detach().aminmax()
    if not (low >= 0 and high < math.inf):
        place = (~((x >= 0) & x.isfinite())).nonzero()[0].tolist()
        raise ValueError(
            f"{name}{place} is {x[tuple(place)].item()}. All of {name} must be finite and at least 0: time "
            f"does not run back and memory does not grow. Look at `{name}.isfinite()` and `{name}.min()`."
        )
