"""The scans that `frac_scan` is timed beside, called as their own packages want it.

Each takes values of the same shape from the same tokens. fla's `chunk_gla` with a key of 16 computes the
very function that `frac_scan` computes; the others are other layers' scans at the same width.
"""

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from fracts.kernels import frac_scan, frac_step
from fracts.memory import mode_timescales

MODES, CHANNELS = 16, 64
HEADS = 16 if torch.cuda.is_available() else 2  # few, where a script is only tried out
KEYS = 128  # features of a key where memory is one matrix a head
TIMESCALES = 1.0, 131072.0
# Their __init__ imports everything, CUDA extensions too; what is used here needs none of it.
BARE = "fla", "fla.ops", "fla.layers", "mamba_ssm"


class Tokens(NamedTuple):
    """What all scans are made from."""

    c: Tensor  # (batch, time, heads, modes)
    b: Tensor
    step: Tensor  # (batch, time, heads), float32
    rates: Tensor  # (heads, modes), float32
    v: Tensor  # (batch, time, heads, channels)


class Op(NamedTuple):
    """A scan: a function and its inputs, of which those that require it get a gradient."""

    run: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]
    exact: bool = False  # comparable to the float64 loop, with c, b, v in the first places
    note: str = ""
    safe: bool = False  # waits for the GPU when called, not when captured


def draw(batch: int, time: int, dtype: torch.dtype, device: str) -> Tokens:
    """Normal tokens, steps about 1, and the rates of the default layer, the tail mode's 0 among them."""
    random = torch.Generator(device).manual_seed(0)

    def normal(width: int) -> Tensor:
        return torch.randn(batch, time, HEADS, width, generator=random, device=device, dtype=dtype)

    step = 0.5 + torch.rand(batch, time, HEADS, generator=random, device=device)
    tau = torch.as_tensor(mode_timescales(*TIMESCALES, MODES), device=device)
    rates = (1 / tau).float().expand(HEADS, -1).contiguous()
    return Tokens(normal(MODES), normal(MODES), step, rates, normal(CHANNELS))


def frac(tokens: Tokens) -> Op:
    def run(c: Tensor, b: Tensor, v: Tensor, step: Tensor) -> Tensor:
        return frac_scan(c, b, step, tokens.rates, v)[0]

    return Op(run, leaves(tokens.c, tokens.b, tokens.v, tokens.step), exact=True, safe=True)


def frac_kernels(tokens: Tokens) -> Op:
    """Without the door, whose checks look at the inputs: the difference is what they cost."""
    from fracts.kernels.scan_triton import scan_triton

    start = tokens.step.new_zeros(len(tokens.v), HEADS, MODES, CHANNELS)

    def run(c: Tensor, b: Tensor, v: Tensor, step: Tensor) -> Tensor:
        return scan_triton(c, b, step, tokens.rates, v, start)[0]

    return Op(run, leaves(tokens.c, tokens.b, tokens.v, tokens.step), exact=True)


def chunk_gla(tokens: Tokens) -> Op:
    from fla.ops.gla import chunk_gla

    gate = (-tokens.step[..., None] * tokens.rates).to(tokens.v.dtype)

    def run(c: Tensor, b: Tensor, v: Tensor, g: Tensor) -> Tensor:
        return chunk_gla(c, b, v, g, scale=1.0)[0]

    return Op(run, leaves(tokens.c, tokens.b, tokens.v, gate), exact=True)


def chunk_simple_gla(tokens: Tokens) -> Op:
    from fla.ops.common import chunk_o
    from fla.ops.simple_gla import chunk_simple_gla

    note = ""
    if not chunk_o.TRITON_ABOVE_3_7_1 and chunk_o.IS_NVIDIA_HOPPER:
        chunk_o.TRITON_ABOVE_3_7_1 = True
        note = "backward: guard lifted for timing, its gradients are known to be wrong"
    gate = (-tokens.step * tokens.rates[:, MODES // 2]).to(tokens.v.dtype)
    query, key = (_like(tokens.v, *tokens.v.shape[:3], KEYS) for _ in range(2))

    def run(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
        return chunk_simple_gla(q, k, v, g, scale=1.0)[0]

    return Op(run, leaves(query, key, tokens.v, gate), note=note)


def mamba2(tokens: Tokens) -> Op:
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    batch, time = tokens.v.shape[:2]
    write, read = (_like(tokens.v, batch, time, 1, KEYS) for _ in range(2))

    def run(x: Tensor, dt: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return mamba_chunk_scan_combined(x, dt, rate, b, c, chunk_size=256)

    return Op(run, leaves(tokens.v, tokens.step, -tokens.rates[:, MODES // 2], write, read))


def mamba3(tokens: Tokens) -> Op:
    from mamba_ssm.ops.triton.mamba3.mamba3_siso_combined import mamba3_siso_combined

    batch, time = tokens.v.shape[:2]
    query, key = (_like(tokens.v, batch, time, 1, KEYS) for _ in range(2))
    step = tokens.step.transpose(1, 2).contiguous()
    decay = -step * tokens.rates[:, MODES // 2, None]
    mix = torch.rand_like(step).to(tokens.v.dtype)
    query_bias, key_bias = (_like(tokens.step, HEADS, KEYS) for _ in range(2))
    angles = _like(tokens.v, batch, time, HEADS, KEYS // 2)
    inputs = query, key, tokens.v, decay, step, mix, query_bias, key_bias, angles
    return Op(mamba3_siso_combined, leaves(*inputs))


def attention(tokens: Tokens) -> Op:
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    query, key = (_like(tokens.v, *tokens.v.shape) for _ in range(2))
    return Op(run, leaves(*(x.transpose(1, 2) for x in (query, key, tokens.v))))


def frac_one(tokens: Tokens) -> Op:
    c, b, step, v = (x[:, 0] for x in (tokens.c, tokens.b, tokens.step, tokens.v))
    state = _like(tokens.step, len(v), HEADS, MODES, CHANNELS)
    return Op(
        lambda *inputs: frac_step(*inputs, out=inputs[-1])[0], (c, b, step, tokens.rates, v, state), safe=True
    )


def gla_one(tokens: Tokens) -> Op:
    from fla.ops.gla import fused_recurrent_gla

    gate = (-tokens.step[..., None] * tokens.rates).to(tokens.v.dtype)
    state = _like(tokens.step, len(gate), HEADS, MODES, CHANNELS)

    def run(c: Tensor, b: Tensor, v: Tensor, g: Tensor, state: Tensor) -> Tensor:
        return fused_recurrent_gla(c, b, v, gk=g, scale=1.0, initial_state=state, output_final_state=True)[0]

    return Op(run, (tokens.c, tokens.b, tokens.v, gate, state))


def mamba2_one(tokens: Tokens) -> Op:
    from mamba_ssm.ops.triton.selective_state_update import selective_state_update

    x, step = tokens.v[:, 0], tokens.step[:, 0, :, None].expand(-1, -1, CHANNELS)
    write, read = (_like(tokens.v, len(x), 1, KEYS) for _ in range(2))
    rate = -tokens.rates[:, MODES // 2, None, None].expand(-1, CHANNELS, KEYS)
    # One number a head: strides of 0 tell the kernel so. Without `skip` and `bias` it cannot be called.
    skip, bias = (torch.zeros_like(tokens.rates[:, 0])[:, None].expand(-1, CHANNELS) for _ in range(2))
    state = _like(tokens.step, len(x), HEADS, CHANNELS, KEYS)

    def run(state: Tensor, x: Tensor, step: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return selective_state_update(state, x, step, rate, b, c, D=skip, dt_bias=bias, dt_softplus=True)

    return Op(run, (state, x, step, rate, write, read))


SCANS = {
    "frac_scan": frac,
    "frac_scan, kernels alone": frac_kernels,
    "fla chunk_gla, K=16": chunk_gla,
    "fla chunk_simple_gla, K=128": chunk_simple_gla,
    "Mamba-2 SSD, N=128": mamba2,
    "Mamba-3 SISO, N=128": mamba3,
    "causal attention": attention,
}
STEPS = {
    "frac_step": frac_one,
    "fla fused_recurrent_gla, K=16": gla_one,
    "Mamba-2 selective_state_update, N=128": mamba2_one,
}


def leaves(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.detach().requires_grad_() for x in tensors)


def _like(x: Tensor, *shape: int) -> Tensor:
    return torch.randn(*shape, device=x.device, dtype=x.dtype)


def use_peers(folder: Path) -> None:
    """Make the packages unpacked in `folder` importable, without what their __init__ would import."""
    sys.path.insert(0, str(folder))
    for name in BARE:
        package = types.ModuleType(name)
        package.__version__ = "0"  # some of them compare it
        package.__path__ = [str(folder / Path(*name.split(".")))]
        sys.modules[name] = package
