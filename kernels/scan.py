"""The door to the scan: what comes in is checked here, what goes out is what `scan_reference.py` defines.

The one idea: a bank of M exponential memories per head, forgetting over real elapsed time (a step times a
rate), written and read by the token. README.md has the mathematics.
"""

import math
from importlib.util import find_spec

import torch
from torch import Tensor

from fracts.kernels.scan_chunked import scan_chunked
from fracts.kernels.step import scan_step

# Builds of torch for other accelerators, and for Windows, come without triton.
TRITON = find_spec("triton") is not None


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
    y [B, T, H, P] and final state [B, H, M, P]. All are float32, or all float64; or c, b, v and y are
    bfloat16, the others float32, and sums are in float32.

    Raises
    ------
    TypeError
        An input is no tensor, or the dtypes are not one of these.
    ValueError
        Shapes or devices disagree, or a step or rate is negative or not finite. The range is not looked at
        in a CUDA graph's capture or in `torch.compile`, which cannot wait for the answer.

    Notes
    -----
    On an NVIDIA GPU float32 and bfloat16 run in Triton's kernels, everything else in torch.

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
        initial_state = rates.new_zeros(v.shape[0], *c.shape[2:], v.shape[-1])
    return scan(c, b, step, rates, v, initial_state)


def scan(
    c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor]:
    """`frac_scan` of inputs that are known to be right: nothing is checked, a GPU not waited for.

    Examples
    --------
    >>> ones = torch.ones(1, 3, 1, 1)
    >>> y, state = scan(ones, ones, ones[..., 0], torch.zeros(1, 1), ones, torch.zeros(1, 1, 1, 1))
    >>> y.flatten()
    tensor([1., 2., 3.])
    """
    if by_triton(v):
        from fracts.kernels.scan_triton import scan_triton  # triton need not be there without a GPU

        return scan_triton(c, b, step, rates, v, initial_state)
    if v.dtype == torch.bfloat16:
        y, state = scan_chunked(c.float(), b.float(), step, rates, v.float(), initial_state)
        return y.to(v.dtype), state
    return scan_chunked(c, b, step, rates, v, initial_state)


def frac_step(
    c: Tensor,
    b: Tensor,
    step: Tensor,
    rates: Tensor,
    v: Tensor,
    state: Tensor,
    *,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Output and new state of one token: `frac_scan` without the time axis.

    Parameters
    ----------
    c, b : [B, H, M].  step : [B, H].  rates : [H, M].  v : [B, H, P].  state : [B, H, M, P].
    out : [B, H, M, P], memory for the new state, `state` itself to move it in place. None: memory of its own.

    Returns
    -------
    y [B, H, P] and the new state [B, H, M, P], of dtypes as in `frac_scan`. Differentiable without `out`.

    Raises
    ------
    TypeError, ValueError
        As `frac_scan`; ValueError too if a gradient is asked for through `out`.

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
    inputs = {"c": c, "b": b, "step": step, "rates": rates, "v": v, "state": state}
    _check(inputs if out is None else inputs | {"out": out}, "BH")
    learns = torch.is_grad_enabled() and any(x.requires_grad for x in inputs.values())
    if out is not None and learns:
        names = ", ".join(name for name, x in inputs.items() if x.requires_grad)
        raise ValueError(
            f"out is given, and {names} asks for a gradient. A state moved in place has none. Leave `out` "
            "away or step within `torch.no_grad()`."
        )
    if by_triton(v) and not learns:
        from fracts.kernels.scan_triton_step import step_triton

        return step_triton(c, b, step, rates, v, state, torch.empty_like(state) if out is None else out)
    y, moved = scan_step(c.to(state.dtype), b.to(state.dtype), step, rates, v.to(state.dtype), state)
    return y.to(v.dtype), moved if out is None else out.copy_(moved)


def step_in_place(c: Tensor, b: Tensor, step: Tensor, rates: Tensor, v: Tensor, state: Tensor) -> Tensor:
    """Output of `frac_step` of inputs that are known to be right, all of one dtype, and `state` is moved:
    nothing is checked, a GPU not waited for.

    Examples
    --------
    >>> one = torch.ones(1, 1, 1)
    >>> state = torch.ones(1, 1, 1, 1)
    >>> step_in_place(one, one, one[..., 0], torch.zeros(1, 1), one, state)
    tensor([[[2.]]])
    >>> state.item()
    2.0
    """
    if by_triton(v):
        from fracts.kernels.scan_triton_step import step_triton

        return step_triton(c, b, step, rates, v, state, state)[0]
    y, moved = scan_step(c, b, step, rates, v, state)
    state.copy_(moved)
    return y


def by_triton(v: Tensor) -> bool:
    """Whether numbers like `v` are for Triton's kernels.

    Examples
    --------
    >>> by_triton(torch.ones(1))
    False
    """
    return v.is_cuda and v.dtype != torch.float64 and TRITON


def _check(inputs: dict[str, Tensor], axes: str) -> None:
    for name, x in inputs.items():
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name} is a {type(x).__name__}. It must be a torch tensor. Use `torch.as_tensor({name})`."
            )
    v = inputs["v"]
    _check_kind(inputs)
    _check_shapes(inputs, axes)
    if torch.compiler.is_compiling() or (v.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    ranged = {name: inputs[name].detach() for name in ("step", "rates") if inputs[name].numel()}
    # One answer to wait for, however many the questions.
    bounds = torch.stack([bound for x in ranged.values() for bound in x.aminmax()]).tolist() if ranged else []
    for (name, x), low, high in zip(ranged.items(), bounds[::2], bounds[1::2], strict=True):
        if not (low >= 0 and high < math.inf):
            _refuse(name, x)


def _check_kind(inputs: dict[str, Tensor]) -> None:
    v = inputs["v"]
    if v.dtype not in (torch.float32, torch.float64, torch.bfloat16):
        raise TypeError(f"v is {v.dtype}. The scan runs in float32, float64 or bfloat16. Use `v.float()`.")
    for name, x in inputs.items():
        # Decays and states know differences that bfloat16 does not.
        half = v.dtype == torch.bfloat16 and name not in ("c", "b", "v")
        needed, said = (torch.float32, "torch.float32") if half else (v.dtype, "v.dtype")
        if x.dtype != needed:
            raise TypeError(
                f"{name} is {x.dtype}, v is {v.dtype}. {name} must be {needed}. Use `{name}.to({said})`."
            )
        if x.device != v.device:
            raise ValueError(
                f"{name} is on {x.device}, v on {v.device}. All need one device. Use `{name}.to(v.device)`."
            )


def _check_shapes(inputs: dict[str, Tensor], axes: str) -> None:
    layouts = {"c": axes + "M", "v": axes + "P", "b": axes + "M", "step": axes, "rates": "HM"}
    layouts |= {name: "BHMP" for name in ("initial_state", "state", "out") if name in inputs}
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


def _refuse(name: str, x: Tensor) -> None:
    place = (~((x >= 0) & x.isfinite())).nonzero()[0].tolist()
    raise ValueError(
        f"{name}{place} is {x[tuple(place)].item()}. All of {name} must be finite and at least 0: time "
        f"does not run back and memory does not grow. Look at `{name}.isfinite()` and `{name}.min()`."
    )
