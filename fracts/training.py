"""Training networks with Lightning: silent, on one device, from generators of its own.

A network starts as the anchors that it leans on. Held-out time tells when to stop, and what it has a say in.
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

from fracts.cuts import common_ends
from fracts.epochs import tell
from fracts.heads import pinball
from fracts.linear import LinearPath
from fracts.network import FracNetwork, one_thread
from fracts.network_share import settle
from fracts.series import Panel
from fracts.windows import Epoch, RandomWindows, Rest, Window, held_out_windows

log = logging.getLogger("fracts")

TOKENS = 2048  # rows of a training batch, unless told
_PATIENCE = 0.25  # of the epochs, without a better held-out loss
PATIENCE = 3  # epochs at least


def train_beside(
    networks: list[FracNetwork],
    panel: Panel,
    path: LinearPath,
    seeds: list[int],
    *,
    window: int,
    batch_size: int | None,
    max_epochs: int,
    learning_rate: float,
    device: str,
    trainer: Callable[[], lightning.Trainer] | None,
    verbose: int,
) -> tuple[FracNetwork, list[Epoch], Tensor]:
    """Train `networks` on the history before the last fold of `path`, windows drawn by a seed for each: their
    mean, settled beside `path`, the history of one after the other, and the share of their mean, (horizon,).

    batch_size: windows at once; None for as many as hold a fixed number of rows. Raises what `train` does.
    """
    rest = Rest.of(panel, path)
    # All series share the networks, whatever they share of the linear path.
    begin, stop = np.searchsorted(panel.times, common_ends(panel)[[0, -1]], side="right").tolist()
    length, held_out = min(window, stop), held_out_windows(rest, stop, window)
    history = []
    for network, seed in zip(networks, seeds, strict=True):
        history += train(
            network,
            RandomWindows(rest, begin, stop, length, batch_size or max(1, TOKENS // length), seed),
            held_out,
            max_epochs=max_epochs,
            learning_rate=learning_rate,
            device=device,
            trainer=trainer,
            verbose=verbose,
        )
    whole = FracNetwork.mean_of(networks)
    learned = 1 - path.alone if path.alone.size else np.ones(path.memory.horizon)
    return whole, history, settle(whole, held_out, torch.from_numpy(learned).float())


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
) -> list[Epoch]:
    """Train `network` in place, by its loss on `held_out` windows: its history.

    Raises ValueError where the numbers stop being finite, TypeError where `trainer` returns no Trainer.
    """
    steps = max_epochs * batches.n_batches
    patience = max(PATIENCE, round(_PATIENCE * max_epochs))
    fitting = _Fitting(network, held_out, learning_rate, steps, patience, captured=trainer is None)
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
    return fitting.history


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
    seen = window.covariates, window.ahead, window.noise
    quantiles, _ = network(window.u, window.times, window.gap, window.group, *seen)
    losses = pinball(quantiles, window.rest, network.head.levels)
    unknown = window.rest.isnan()
    return window.weight[:, None, None] * torch.where(losses.isnan() & ~unknown, torch.inf, losses)


def _losses_of_path(network: FracNetwork, window: Window) -> Tensor:
    """Those of the linear path, where these rows were held out from it."""
    errors = network.head.errors[window.group] * window.noise[:, None, None]
    quantiles = window.linear[..., None] + errors[:, None]
    return window.weight[:, None, None] * pinball(quantiles, window.rest, network.head.levels)


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
        patience: int,
        captured: bool = False,
    ) -> None:
        super().__init__()
        self.network, self.held_out, self.captured = network, held_out, captured
        self.loss: _Loss | None = None
        self.learning_rate, self.n_steps, self.patience = learning_rate, n_steps, patience
        self.history: list[Epoch] = []
        self.best: dict[str, Tensor] = {}
        self.best_loss, self.best_epoch = float("inf"), 0
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
        if self.history[-1].epoch - self.best_epoch >= self.patience:
            self.trainer.should_stop = True

    def _record(self, epoch: int, train_loss: float) -> None:
        self.network.eval()
        with torch.no_grad():
            windows = [self.transfer_batch_to_device(w, self.device, 0) for w in self.held_out]
            held_out = float(_mean(*(_losses(self.network, w) for w in windows)))
            told = held_out if epoch else float(_mean(*(_losses_of_path(self.network, w) for w in windows)))
        self.network.train()
        if held_out < self.best_loss:
            self.best_loss, self.best_epoch = held_out, epoch
            self.best = {name: w.detach().cpu().clone() for name, w in self.network.state_dict().items()}
        self.history.append(Epoch(epoch, train_loss, told))
        log.info("epoch %d: training loss %.5f, held-out loss %.5f", *self.history[-1])
        tell(epoch, told)


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
