"""Training the network with Lightning: silent, on one device, from generators of its own.

The network starts as the linear path. Held-out time decides when to stop, and whether it stays: unless it
beats the linear path there, it adds nothing.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from fracts.heads import pinball
from fracts.network import FracNetwork
from fracts.windows import RandomWindows, Window

log = logging.getLogger("fracts")

BATCHES_AN_EPOCH = 16
PATIENCE = 4  # epochs without a better held-out loss
_MARGIN = 0.999  # of the linear path's held-out loss: less of a gain is luck


class Epoch(NamedTuple):
    """Quantile losses of an epoch, mean over leads, in units of scale."""

    epoch: int
    train_loss: float
    held_out_loss: float


def train(
    network: FracNetwork,
    batches: RandomWindows,
    held_out: list[Window],
    *,
    max_epochs: int,
    learning_rate: float,
    device: str,
    trainer: Callable[[], lightning.Trainer] | None,
) -> tuple[list[Epoch], bool]:
    """Train `network` in place; its history, and whether it beat the linear path (else it is silenced).

    Raises FloatingPointError where the loss stops being finite.
    """
    fitting = _Fitting(network, held_out, learning_rate, max_epochs)
    loader = DataLoader(batches, batch_size=None, generator=torch.Generator())
    with _quiet():
        runner = trainer() if trainer else _silent_trainer(max_epochs, device)
        runner.fit(fitting, loader)
    network.cpu().eval()
    network.load_state_dict(fitting.best)
    kept = fitting.best_loss < _MARGIN * fitting.history[0].held_out_loss
    if not kept:
        network.head.silence()
    return fitting.history, kept


def _silent_trainer(max_epochs: int, device: str) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator="gpu" if device.startswith("cuda") else "cpu",
        devices=1,
        max_epochs=max_epochs,
        limit_train_batches=BATCHES_AN_EPOCH,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


class _Fitting(lightning.LightningModule):
    """The loss, the optimiser, and the best weights seen on held-out time."""

    def __init__(
        self, network: FracNetwork, held_out: list[Window], learning_rate: float, max_epochs: int
    ) -> None:
        super().__init__()
        self.network, self.held_out = network, held_out
        self.learning_rate, self.epochs = learning_rate, max_epochs
        self.history: list[Epoch] = []
        self.best: dict[str, Tensor] = {}
        self.best_loss = float("inf")
        self.losses: list[Tensor] = []

    def configure_optimizers(self) -> dict[str, object]:
        optimizer = torch.optim.AdamW(self.network.parameters(), self.learning_rate, weight_decay=0.01)
        total = self.epochs * BATCHES_AN_EPOCH
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total, self.learning_rate / 20)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def training_step(self, window: Window) -> Tensor:
        loss = self._loss(window).mean()
        if not torch.isfinite(loss):
            raise FloatingPointError(
                f"the training loss became {loss.item()} in epoch {self.current_epoch}. "
                f"Lower learning_rate (now {self.learning_rate})."
            )
        self.losses.append(loss.detach())
        return loss

    def on_train_start(self) -> None:
        self._record(0, float("nan"))

    def on_train_epoch_end(self) -> None:
        self._record(self.current_epoch + 1, float(torch.stack(self.losses).mean()))
        self.losses.clear()
        best = min(self.history, key=lambda epoch: epoch.held_out_loss)
        if self.history[-1].epoch - best.epoch >= PATIENCE:
            self.trainer.should_stop = True

    def _record(self, epoch: int, train_loss: float) -> None:
        self.network.eval()
        with torch.no_grad():
            losses = [self._loss(self.transfer_batch_to_device(w, self.device, 0)) for w in self.held_out]
        self.network.train()
        held_out = float(torch.stack(losses).mean())
        self.history.append(Epoch(epoch, train_loss, held_out))
        log.info("epoch %d: training loss %.5f, held-out loss %.5f", *self.history[-1])
        if held_out < self.best_loss:
            self.best_loss = held_out
            self.best = {name: w.detach().cpu().clone() for name, w in self.network.state_dict().items()}

    def _loss(self, window: Window) -> Tensor:
        quantiles, _ = self.network(window.u, window.times, window.gap, window.group)
        return pinball(quantiles, window.rest, self.network.head.levels)


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
