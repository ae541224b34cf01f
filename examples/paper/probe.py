"""The model, the training and the test of the heavy-tail probe, the same for every mixer.

One idea: everything but the mixer is shared, so a difference in the table is the mixer's. One layer: an
embedding of the events, a mixer, a feed-forward block, a read-out of the sign. What a mixer may be given
beside its published form (`Setting.favours`) is the same list for all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from mixers import Attention
from torch import Tensor, nn
from torch.nn import functional as F

from fracts.datasets import make_heavy_tail
from fracts.mixer import linear

WIDTH = 128
N_PARAMETERS = 200_000
TRAINED, BATCH = 512, 32  # length and number of the sequences of a training step
LENGTHS = (512, 2048, 8192, 32768, 131072)
LAST = 64  # steps before each length that count
SEGMENT = 512  # steps at once in a test
WARM_UP, CLIP = 100, 1.0

# "linear_value": values linear in the events, without bias, convolution or SiLU. "even_gates": gates see the
# size of a signed number, not its sign. "centred_values": values of tokens less their mean over the training,
# zero at the start. "hard_gates": writes that reach zero and decays that reach one.
FAVOURS = ("linear_value", "even_gates", "centred_values", "hard_gates")


@dataclass(frozen=True)
class Task:
    """events: "signed" numbers or "tokens"."""

    events: str
    exponent: float
    probability: float = 0.05

    def draw(self, n_sequences: int, length: int, seed: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Events and labels (n_sequences, length), int8."""
        draws = np.random.default_rng(seed)
        parts = [
            make_heavy_tail(
                min(2**21 // length + 1, n_sequences - start),
                length,
                self.exponent,
                event_probability=self.probability,
                random_state=draws,
            )
            for start in range(0, n_sequences, 2**21 // length + 1)
        ]
        events, labels = (torch.from_numpy(np.concatenate(part)) for part in zip(*parts, strict=True))
        return events, labels


class Embedding(nn.Module):
    """Features of events: what passes by the mixer, what it writes, and what gates it."""

    def __init__(self, events: str, favours: frozenset[str], generator: torch.Generator) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.linear_value = "linear_value" in favours
        self.even = linear(1, WIDTH, generator) if "even_gates" in favours else None
        self.tokens = self.values = None
        if events == "signed":
            self.signed = linear(1, WIDTH, generator, bias=not self.linear_value)
        else:
            self.tokens = nn.Parameter(torch.randn(3, WIDTH, generator=generator))
            if "centred_values" in favours:
                self.values = nn.Parameter(torch.zeros(3, WIDTH))
                self.register_buffer("seen", torch.zeros(3, dtype=torch.float64))

    def forward(self, events: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Three times (batch, time, WIDTH); events: (batch, time), -1, 0 or 1."""
        if self.tokens is None:
            x = self.signed(events[..., None])
            normed = self.norm(x)
            gate = normed if self.even is None else F.silu(self.even(events.abs()[..., None]))
            return x, x if self.linear_value else normed, gate
        token = (events + 1).long()
        x = F.embedding(token, self.tokens)
        gate = self.norm(x)
        if self.values is None:
            return x, gate, gate
        if self.training:
            self.seen += torch.stack([(token == kind).double().sum() for kind in range(3)])
        mean = (self.seen / self.seen.sum()).float() @ self.values
        return x, F.embedding(token, self.values) - mean, gate


class Probe(nn.Module):
    """Logits that the label is +1; `make(favours, generator)` gives the mixer."""

    def __init__(
        self,
        events: str,
        make: Callable[[frozenset[str], torch.Generator], nn.Module],
        favours: frozenset[str],
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.embedding = Embedding(events, favours, generator)
        self.mixer = make(favours, generator)
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-6) for _ in range(2))
        self.read = linear(WIDTH, 1, generator)
        hidden = round((N_PARAMETERS - n_parameters(self)) / (2 * WIDTH + 1))
        self.up = linear(WIDTH, hidden, generator)
        self.down = linear(hidden, WIDTH, generator, scale=0.5)

    def forward(self, events: Tensor, state: object = None) -> tuple[Tensor, object]:
        """Logits (batch, time) and the state after the last step."""
        x, value, gate = self.embedding(events)
        y, state = self.mixer(value, gate, state)
        x = x + y
        x = x + self.down(F.silu(self.up(self.norms[0](x))))
        return self.read(self.norms[1](x))[..., 0], state

    def absorb(self, events: Tensor, state: object) -> object:
        """The state after the last step."""
        _, value, gate = self.embedding(events)
        return self.mixer.absorb(value, gate, state)


def n_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def loss_of(model: nn.Module, events: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the sign where there is one."""
    logits, _ = model(events)
    known = (labels != 0).float()
    losses = F.binary_cross_entropy_with_logits(logits, (labels > 0).float(), reduction="none")
    return (losses * known).sum() / known.sum()


class Run:
    """One model in training: AdamW down a cosine.

    On a GPU each has a stream of its own, and a step is captured once, as a graph: small layers are held back
    by their launches, and several runs fill the chip.
    """

    def __init__(self, model: Probe, learning_rate: float, steps: int, *, compiled: bool) -> None:
        self.model, self.steps, self.peak = model.train(), steps, learning_rate
        device = next(model.parameters()).device
        self.rate = torch.tensor(learning_rate, device=device)
        self.optimiser = torch.optim.AdamW(
            model.parameters(),
            self.rate,
            betas=(0.9, 0.99),
            weight_decay=0.0,
            capturable=device.type == "cuda",
        )
        self.loss = _compiled(loss_of) if compiled else loss_of
        self.events = torch.zeros(BATCH, TRAINED, device=device)
        self.labels = torch.ones_like(self.events)
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        self.graph = self._captured() if self.stream else None

    def step(self, i: int, events: Tensor, labels: Tensor) -> None:
        """The step `i` from 0, on (BATCH, TRAINED) events and labels."""
        with torch.cuda.stream(self.stream):  # None: no stream, on a CPU
            self.events.copy_(events)
            self.labels.copy_(labels)
            warm = min(1.0, (i + 1) / WARM_UP)
            self.rate.fill_(self.peak * warm * 0.5 * (1 + math.cos(math.pi * i / self.steps)))
            if self.graph:
                self.graph.replay()
            else:
                self._learn()

    def _learn(self) -> None:
        self.optimiser.zero_grad()
        self.loss(self.model, self.events, self.labels).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()

    def _captured(self) -> torch.cuda.CUDAGraph:
        start = {name: x.clone() for name, x in self.model.state_dict().items()}
        with torch.cuda.stream(self.stream):
            for _ in range(3):  # what is made at first use must not be made in a capture
                self._learn()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            self._learn()
        self.model.load_state_dict(start)
        for kept in self.optimiser.state.values():
            for x in kept.values():
                x.zero_()
        return graph


def train(
    models: list[Probe],
    data: list[tuple[Tensor, Tensor]],
    *,
    learning_rate: float,
    steps: int,
    compiled: bool,
) -> None:
    """Train models side by side, each on its events and labels (steps * BATCH, TRAINED), seen once."""
    runs = [Run(model, learning_rate, steps, compiled=compiled) for model in models]
    for i in range(steps):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        for run, (events, labels) in zip(runs, data, strict=True):
            run.step(i, events[rows], labels[rows])
    if any(run.stream for run in runs):
        torch.cuda.synchronize()


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled; models of one build share the result."""
    return torch.compile(function, dynamic=False)


@torch.no_grad()
def accuracies(
    model: Probe, events: Tensor, labels: Tensor, lengths: tuple[int, ...], *, compiled: bool
) -> list[float]:
    """Share of right signs in the last steps before each length.

    events: (sequences, longest).  labels: (sequences, lengths, LAST).
    """
    model.eval()
    # Attention keeps every key: memory holds a few sequences at once, and each step is absorbed alone.
    keeps_all = isinstance(model.mixer, Attention)
    at_once, segment = (max(1, 2**23 // lengths[-1]), lengths[-1]) if keeps_all else (len(events), SEGMENT)
    absorb = _compiled(Probe.absorb) if compiled and not keeps_all else Probe.absorb
    right = torch.zeros(len(lengths), device=events.device)
    for some, truth in zip(events.split(at_once), labels.split(at_once), strict=True):
        state, start = None, 0
        for i, length in enumerate(lengths):
            read = max(start, length - SEGMENT)
            for part in some[:, start:read].split(segment, 1) if read > start else ():
                state = absorb(model, part.float(), state)
            logits, state = model(some[:, read:length].float(), state)
            start = length
            right[i] += (((logits[:, -LAST:] > 0) == (truth[:, i] > 0)) & (truth[:, i] != 0)).sum()
    return (right / (labels != 0).sum((0, 2))).tolist()
