"""The probe is fair and measures what it says."""

import heavy_tail
import numpy as np
import probe
import pytest
import torch
from heavy_tail import MIXERS, held_out, maker, rules
from probe import FAVOURS, LAST, N_PARAMETERS, Probe, Task, accuracies, n_parameters, train

LENGTHS = (96, 200)
all_favours = pytest.mark.parametrize("favours", [frozenset(), frozenset(FAVOURS)], ids=["plain", "favoured"])


@pytest.fixture(autouse=True)
def short_lengths(monkeypatch):
    monkeypatch.setattr(heavy_tail, "LENGTHS", LENGTHS)


def made(name, events, favours=frozenset(), seed=0):
    return Probe(events, maker(name), favours, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("events", ["signed", "tokens"])
@pytest.mark.parametrize("name", MIXERS)
@all_favours
def test_every_mixer_has_the_same_number_of_parameters_within_half_a_percent(name, events, favours):
    assert abs(n_parameters(made(name, events, favours)) / N_PARAMETERS - 1) < 0.005


@pytest.mark.parametrize("name", MIXERS)
def test_accuracies_of_a_stream_are_those_of_a_whole_pass(name):
    model = made(name, "signed", frozenset(FAVOURS)).eval()
    events, labels = held_out(Task("signed", 0.3, 0.3), 5, "test")
    streamed = accuracies(model, events, labels, LENGTHS, compiled=False)
    with torch.no_grad():
        logits, _ = model(events.float())
    for i, length in enumerate(LENGTHS):
        known = labels[:, i] != 0
        right = (logits[:, length - LAST : length] > 0) == (labels[:, i] > 0)
        assert streamed[i] == pytest.approx(right[known].float().mean().item(), abs=1e-6)


def test_the_running_sum_is_right_after_a_single_event_and_wrong_about_its_opposite():
    events = np.zeros((2, LENGTHS[-1]), np.int8)
    events[:, 3] = 1, -1
    labels = np.broadcast_to(np.sign(events.sum(1))[:, None, None], (2, len(LENGTHS), LAST))
    assert rules(events, labels)["running sum"] == [1.0, 1.0]
    assert rules(events, -labels)["running sum"] == [0.0, 0.0]


def test_the_best_exponential_beats_the_running_sum_where_old_events_count_less():
    events, labels = held_out(Task("signed", 0.9, 0.3), 50, "test")
    told = rules(events.numpy(), labels.numpy())
    assert np.all(np.array(told["best exponential"]) > told["running sum"])


def test_training_and_the_two_parts_of_the_test_share_no_sequence():
    task = Task("signed", 0.3, 0.5)
    draws = [task.draw(4, 64, seed)[0] for seed in ((1,), (2,), (3, 0), (3, 1))]
    for i, one in enumerate(draws):
        for other in draws[:i]:
            assert not (one[:, None] == other[None]).all(-1).any()


@pytest.mark.parametrize("events", ["signed", "tokens"])
def test_training_frac_lowers_the_loss(events, monkeypatch):
    monkeypatch.setattr(probe, "BATCH", 4)
    monkeypatch.setattr(probe, "WARM_UP", 1)
    monkeypatch.setattr(probe, "TRAINED", 64)
    task = Task(events, 0.1, 0.2)
    model = made("frac", events, frozenset(FAVOURS[:3]))
    x, y = task.draw(4 * 50, 64, (0,))
    before = probe.loss_of(model, x.float(), y).item()
    train([model], [(x, y)], learning_rate=4e-3, steps=50, compiled=False)
    assert probe.loss_of(model, x.float(), y).item() < 0.9 * before


def test_centred_values_of_tokens_sum_to_zero_over_what_training_saw():
    model = made("frac", "tokens", frozenset(FAVOURS[:3]))
    with torch.no_grad():
        model.embedding.values += torch.randn(3, probe.WIDTH, generator=torch.Generator().manual_seed(1))
    events = torch.tensor([[0.0, 0.0, 1.0, -1.0, 1.0, 0.0]])
    values = model.train().embedding(events)[1]
    assert values.std() > 0.5
    torch.testing.assert_close(values.sum(1), torch.zeros(1, probe.WIDTH), atol=1e-5, rtol=0)


def test_models_trained_side_by_side_learn_as_each_would_alone(monkeypatch):
    monkeypatch.setattr(probe, "BATCH", 4)
    monkeypatch.setattr(probe, "TRAINED", 32)
    task = Task("signed", 0.3, 0.2)
    data = [task.draw(4 * 5, 32, (seed,)) for seed in (0, 1)]
    together, alone = ([made("gdn", "signed", seed=seed) for seed in (0, 1)] for _ in range(2))
    sizes = {"learning_rate": 1e-2, "steps": 5, "compiled": False}
    train(together, data, **sizes)
    for model, drawn in zip(alone, data, strict=True):
        train([model], [drawn], **sizes)
    for one, other in zip(together, alone, strict=True):
        for name, weight in one.state_dict().items():
            assert torch.equal(weight, other.state_dict()[name]), name
    assert not torch.equal(together[0].read.weight, made("gdn", "signed", seed=0).read.weight)
