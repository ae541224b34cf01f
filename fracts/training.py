"""Training the network with Lightning: silent, on one device, from generators of its own.

The network starts as the linear path. Held-out time decides when to stop, and what stays: a part of the
network that does not beat the linear path there adds nothing.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import lightning
import numpy as np
import torch
from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn
from torch.utils.data import DataLoader

from fracts.epochs import tell
from fracts.heads import PARTS, pinball
from fracts.network import FracNetwork, one_thread
from fracts.windows import Epoch, RandomWindows, Window

log = logging.getLogger("fracts")

PATIENCE = 3  # epochs without a better held-out loss
STRETCHES = 8  # of held-out time, for the standard error of a gain
_PROVEN = 0.01, 0.99  # quantiles over held-out rows that what the network says stays between
_CLEAR = 2.0  # standard errors: of the epochs that were tried the one of the largest gain is looked at


@one_thread()
def train(
    network: FracNetwork,
    batches: RandomWindows,
    held_out: list[Window],
    *,
    max_epochs: int,
    learning_rate: float,
    device: str,
    trainer: Callable[[], lightning.Trainer] | None,
    verbose: int,
) -> tuple[list[Epoch], tuple[str, ...]]:
    """Train `network` in place; its history, and the parts that beat the linear path (others are silent).

    Raises ValueError where the numbers stop being finite, TypeError where `trainer` returns no Trainer.
    """
    steps = max_epochs * batches.n_batches
    fitting = _Fitting(network, held_out, learning_rate, steps, captured=trainer is None)
    loader = DataLoader(batches, batch_size=None, generator=torch.Generator())
    with _quiet():
        runner = trainer() if trainer else _trainer(max_epochs, device, progress=verbose > 0)
        if not isinstance(runner, lightning.Trainer):
            raise TypeError(
                f"trainer() returned a {type(runner).__name__}; a lightning.Trainer is needed. "
                "Give `lambda: Trainer(...)`."
            )
        try:
            runner.fit(fitting, loader)
        except ValueError as error:
            raise ValueError(
                f"the training ran away with learning_rate={learning_rate}: {error}. Try a tenth of it."
            ) from error
    network.cpu().eval()
    network.load_state_dict(fitting.best)
    kept = _kept(network, held_out)
    log.info("of the network %s on held-out time", " and ".join(kept) + " stay" if kept else "nothing stays")
    return fitting.history, kept


@torch.no_grad()
def _kept(network: FracNetwork, held_out: list[Window]) -> tuple[str, ...]:
    """Parts of the head that clearly lower the held-out loss; the others are silenced.

    A shift is judged beside what is left of the stretch, and beside the one number for each lead that would
    have been best: what a constant does for this time alone is no gain of a network. The standard error of a
    mean over stretches of time tells what is clear. What is left stays within the range it had on held-out
    time: what it would do elsewhere was never tried.
    """
    trained = {name: w.clone() for name, w in network.head.state_dict().items()}
    kept: tuple[str, ...] = ()
    network.head.silence(*PARTS)
    before = _loss_by_time(network, held_out)
    for part in PARTS:
        if part == "shift":
            before = _loss_by_time(network, held_out, _bias(network, held_out))
        network.head.load_state_dict(trained)
        network.head.silence(*(other for other in PARTS if other != part and other not in kept))
        after = _loss_by_time(network, held_out)
        gain = before - after
        if len(gain) > 1 and gain.mean() > _CLEAR * gain.std() / len(gain) ** 0.5:
            kept = (*kept, part)
        network.head.silence(*(part for part in PARTS if part not in kept))
    network.head.load_state_dict(trained)
    network.head.silence(*(part for part in PARTS if part not in kept))
    if kept:
        least, most = _range(network, held_out)
        network.head.hold_within(least, most, kept)
    return kept


def _range(network: FracNetwork, held_out: list[Window]) -> Tensor:
    """Least and most that the head says of each lead on held-out time, outliers left out: (2, 3, horizon)."""
    said = []
    for window in held_out:
        features, _ = network.features(*window[:3], window.covariates)
        known = ~window.rest.isnan().all(-1)
        said.append(network.head.moves(features[known], window.ahead[known]))
    return torch.from_numpy(np.quantile(torch.cat(said).numpy(), _PROVEN, axis=0)).float()


def _bias(network: FracNetwork, held_out: list[Window]) -> Tensor:
    """Median held-out error at each lead: (horizon,)."""
    errors = []
    for window in held_out:
        quantiles, _ = network(*window[:4], window.covariates, window.ahead)
        errors.append((window.rest - quantiles[..., network.head.median]).flatten(0, 1))
    return torch.cat(errors).nanmedian(0).values.nan_to_num()


def _loss_by_time(network: FracNetwork, held_out: list[Window], bias: Tensor | float = 0.0) -> Tensor:
    """Held-out loss in each of a few stretches of time (stretches,), a `bias` (horizon,) taken out."""
    told = [window._replace(rest=window.rest - bias) for window in held_out]
    rows = torch.cat([_losses(network, window).nanmean(-1) for window in told]).nanmean(0)
    known = rows[~rows.isnan()]
    return torch.stack([part.mean() for part in known.tensor_split(min(STRETCHES, max(1, len(known))))])


def _mean(*losses: Tensor) -> Tensor:
    """Mean of all known losses; 0 where there is none, which no training improves on."""
    total = torch.stack([part.nansum() for part in losses]).sum()
    known = torch.stack([(~part.isnan()).sum() for part in losses]).sum()
    return total / known.clamp(min=1)


class _Loss(nn.Module):
    """The mean loss of a batch, as a module of tensors alone."""

    def __init__(self, network: FracNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, *window: Tensor) -> Tensor:
        return _mean(_losses(self.network, Window(*window)))


def _losses(network: FracNetwork, window: Window) -> Tensor:
    """Quantile losses (batch, time, horizon): NaN where no truth is known, infinite if a forecast is NaN."""
    seen = window.covariates, window.ahead
    quantiles, _ = network(window.u, window.times, window.gap, window.group, *seen)
    losses = pinball(quantiles, window.rest, network.head.levels)
    unknown = window.rest.isnan()
    return window.weight[:, None, None] * torch.where(losses.isnan() & ~unknown, torch.inf, losses)


def _trainer(max_epochs: int, device: str, *, progress: bool) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator="gpu" if device.startswith("cuda") else "cpu",
        devices=[int(device[5:])] if device.startswith("cuda:") else 1,
        max_epochs=max_epochs,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=progress,
        enable_model_summary=False,
    )


class _Fitting(lightning.LightningModule):
    """The loss, the optimiser, and the best weights seen on held-out time.

    captured: whether a GPU replays forward and backward as CUDA graphs, as launches of a small network take
    longer than what they launch. All batches have one shape. Not under a user's trainer, whose precision or
    strategy a graph would not know.
    """

    def __init__(
        self,
        network: FracNetwork,
        held_out: list[Window],
        learning_rate: float,
        n_steps: int,
        captured: bool = False,
    ) -> None:
        super().__init__()
        self.network, self.held_out, self.captured = network, held_out, captured
        self.loss: _Loss | None = None
        self.learning_rate, self.n_steps = learning_rate, n_steps
        self.history: list[Epoch] = []
        self.best: dict[str, Tensor] = {}
        self.best_loss = float("inf")
        self.losses: list[Tensor] = []

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        optimizer = torch.optim.AdamW(self.network.parameters(), self.learning_rate, weight_decay=0.01)
        least = self.learning_rate / 20
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.n_steps, least)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def training_step(self, window: Window) -> Tensor:
        if self.loss is None:
            self.loss = _Loss(self.network)
            if self.captured and window.u.is_cuda:
                torch.cuda.make_graphed_callables(self.loss, window)  # in place
        loss: Tensor = self.loss(*window)
        self.losses.append(loss.detach().clone())  # a graph writes the next one to the same place
        return loss

    def on_train_start(self) -> None:
        self._record(0, float("nan"))

    def on_train_epoch_end(self) -> None:
        losses = torch.stack(self.losses)
        self.losses.clear()
        if not losses.isfinite().all():
            first = losses[~losses.isfinite()][0]
            raise ValueError(f"the loss is {first.item()} in epoch {self.current_epoch}")
        self._record(self.current_epoch + 1, float(losses.mean()))
        best = min(self.history, key=lambda epoch: epoch.held_out_loss)
        if self.history[-1].epoch - best.epoch >= PATIENCE:
            self.trainer.should_stop = True

    def _record(self, epoch: int, train_loss: float) -> None:
        self.network.eval()
        with torch.no_grad():
            windows = [self.transfer_batch_to_device(w, self.device, 0) for w in self.held_out]
            held_out = float(_mean(*(_losses(self.network, w) for w in windows)))
        self.network.train()
        self.history.append(Epoch(epoch, train_loss, held_out))
        log.info("epoch %d: training loss %.5f, held-out loss %.5f", *self.history[-1])
        if held_out < self.best_loss:
            self.best_loss = held_out
            self.best = {name: w.detach().cpu().clone() for name, w in self.network.state_dict().items()}
        tell(epoch, held_out)


@contextmanager
def _quiet() -> Iterator[None]:
    """Lightning says nothing: its advice is about choices made here."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"(lightning|torch)\.")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
