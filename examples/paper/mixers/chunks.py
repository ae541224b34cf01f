"""Matrix memories that decay by one number a head, in chunks of matrix products.

    memory[t] = exp(log_decay[t]) * memory[t-1] + key[t] value[t]^T,    y[t] = query[t] memory[t]

Inside a chunk all pairs of steps meet at once; a loop over the chunks carries the memory (the state-space
dual form of Dao and Gu 2024, arXiv 2405.21060). Decays multiply as sums of logarithms, and only differences
over a positive lag are exponentiated, so nothing overflows at any length.

Chunked tensors are (batch, chunks, heads, steps) or (batch, chunks, heads, steps, features).
"""

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 64  # steps


def split(x: Tensor) -> Tensor:
    """(batch, time, heads, ...) in chunks, zeros after the last step."""
    steps = min(CHUNK, x.shape[1])
    padding = (0, 0) * (x.ndim - 2) + (0, -x.shape[1] % steps)
    return F.pad(x, padding).unflatten(1, (-1, steps)).transpose(2, 3)


def join(x: Tensor, time: int) -> Tensor:
    """The first `time` steps of chunks, (batch, time, heads, features)."""
    return x.transpose(2, 3).flatten(1, 2)[:, :time]


def decays(total: Tensor) -> Tensor:
    """Decay from each earlier step (column) to each later one (row) of a chunk; zero elsewhere.

    total: log decay from the start of the chunk up to and with each step.
    """
    steps = total.shape[-1]
    later = torch.ones(steps, steps, dtype=torch.bool, device=total.device).tril(-1)
    lag = total[..., :, None] - total[..., None, :]
    return lag.masked_fill(~later, -torch.inf).exp()


def scan(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, write: Tensor, now: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs (batch, time, heads, channels) and the memory after the last step.

    query, key: (batch, time, heads or 1, features).  value: (batch, time, heads, channels).
    log_decay: (batch, time, heads), at most 0.
    write, now: (batch, time, heads), strengths of a write as the steps after it, and as its own step sees it.
    memory: (batch, heads, features, channels).
    """
    query, keys, values, log_decay, strength, now = map(split, (query, key, value, log_decay, write, now))
    total = log_decay.cumsum(-1)
    weights = decays(total) * strength[..., None, :] + torch.diag_embed(now)
    inside = (query @ keys.mT * weights) @ values
    starts, memory = _carry(keys, values, total, strength, memory)
    before = total.exp()[..., None] * (query @ starts)
    return join(inside + before, value.shape[1]), memory


def advance(key: Tensor, value: Tensor, log_decay: Tensor, write: Tensor, memory: Tensor) -> Tensor:
    """The memory after the last step; arguments as of `scan`."""
    keys, values, log_decay, strength = map(split, (key, value, log_decay, write))
    return _carry(keys, values, log_decay.cumsum(-1), strength, memory)[1]


def delta_scan(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, write: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor]:
    """`scan` by the delta rule: a key's old content, after the decay, is replaced by the share `write`.

        decayed = exp(log_decay[t]) * memory[t-1]
        memory[t] = decayed + write[t] * key[t] (value[t] - key[t] decayed)^T

    Inside a chunk the values that replace solve a unit triangular system (Yang, Kautz and Hatamizadeh 2024,
    arXiv 2412.06464).  query, key: (batch, time, heads, features).
    """
    query, keys = split(query), split(key)
    total = split(log_decay).cumsum(-1)
    since = decays(total)
    replacing, starts, memory = _replace(keys, split(value), total, since, split(write), memory)
    scores = query @ keys.mT
    inside = (scores * since + torch.diag_embed(scores.diagonal(dim1=-2, dim2=-1))) @ replacing
    before = total.exp()[..., None] * (query @ starts)
    return join(inside + before, value.shape[1]), memory


def delta_advance(key: Tensor, value: Tensor, log_decay: Tensor, write: Tensor, memory: Tensor) -> Tensor:
    """The memory after the last step; arguments as of `delta_scan`."""
    total = split(log_decay).cumsum(-1)
    return _replace(split(key), split(value), total, decays(total), split(write), memory)[2]


def _carry(
    keys: Tensor, values: Tensor, total: Tensor, strength: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor]:
    """The memory at the start of each chunk, (batch, chunks, heads, ...) and at the end."""
    end = total[..., -1:]
    added = keys.mT @ (values * ((end - total).exp() * strength)[..., None])
    kept = end.exp()[..., None]
    starts = []
    for chunk in range(values.shape[1]):
        starts.append(memory)
        memory = kept[:, chunk] * memory + added[:, chunk]
    return torch.stack(starts, 1), memory


def _replace(
    keys: Tensor, values: Tensor, total: Tensor, since: Tensor, write: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What each step adds to its key, the memory at the start of each chunk, and after the last."""
    overlap = write[..., None] * (keys @ keys.mT) * since
    sources = write[..., None] * torch.cat([values, total.exp()[..., None] * keys], -1)
    solved = torch.linalg.solve_triangular(overlap, sources, upper=False, unitriangular=True)
    fresh, seen = solved.split([values.shape[-1], keys.shape[-1]], -1)
    end = total[..., -1:]
    to_end = (keys * (end - total).exp()[..., None]).mT
    kept = end.exp()[..., None]
    starts, replacing = [], []
    for chunk in range(values.shape[1]):
        starts.append(memory)
        replacing.append(fresh[:, chunk] - seen[:, chunk] @ memory)
        memory = kept[:, chunk] * memory + to_end[:, chunk] @ replacing[-1]
    return torch.stack(replacing, 1), torch.stack(starts, 1), memory
