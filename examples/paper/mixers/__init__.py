"""The rivals of the FRAC layer, as sequence mixers of one interface, in plain PyTorch.

Every mixer maps `value` and `gate`, both (batch, time, width), to outputs of the same shape. What enters the
memory is read from `value`; what steers it (queries, keys, steps, decays, output gates) is read from `gate`.
Passing the same features twice gives the published layers. The state that a pass returns lets the next one go
on, so a sequence may be cut anywhere; `absorb` moves the state alone, where the outputs are not wanted.

The favours, for a fair trial on signed events: `linear_value` makes the path from `value` to the memory
linear and bias-free, `hard_gates` lets write strengths and steps reach exactly zero, and decays exactly one.

Weights are drawn from `generator` only. Nothing in a pass waits for the device.

>>> import torch
>>> mixer = Mamba2(32, n_heads=2, d_state=16, linear_value=True, hard_gates=True, generator=torch.Generator())
>>> features = torch.randn(4, 100, 32)
>>> y, state = mixer(features[:, :60], features[:, :60])
>>> state = mixer.absorb(features[:, 60:99], features[:, 60:99], state)
>>> y, state = mixer(features[:, 99:], features[:, 99:], state)
>>> y.shape
torch.Size([4, 1, 32])
"""

from mixers.attention import Attention
from mixers.gated_delta import GatedDeltaNet
from mixers.mamba2 import Mamba2
from mixers.mamba3 import Mamba3

__all__ = ["Attention", "GatedDeltaNet", "Mamba2", "Mamba3"]
