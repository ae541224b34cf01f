"""What the door turns away, and what it leaves alone."""

import pytest
import torch

from fracts.kernels import frac_scan, frac_step


def one_token(inputs):
    step = {name: inputs[name][:, 0] for name in ("c", "b", "step", "v")}
    return step | {"rates": inputs["rates"], "state": inputs["initial_state"]}


def with_entry(x, value):
    x = x.clone()
    x[(1,) * x.ndim] = value
    return x


WRONG = {
    "array": ("c", lambda x: x.numpy(), TypeError, r"c is a ndarray.*torch\.as_tensor\(c\)"),
    "integers": ("v", lambda x: x.long(), TypeError, r"v is torch\.int64.*v\.float\(\)"),
    "half": ("v", lambda x: x.half(), TypeError, r"v is torch\.float16"),
    "rounded": (
        "v",
        lambda x: x.bfloat16(),
        TypeError,
        r"c is torch\.float64, v is torch\.bfloat16.*c\.to\(v",
    ),
    "mixed dtypes": ("b", lambda x: x.float(), TypeError, r"b is torch\.float32, v is torch\.float64.*b\.to"),
    "other device": ("step", lambda x: x.to("meta"), ValueError, r"step is on meta, v on cpu"),
    "no time axis": ("c", lambda x: x[0], ValueError, r"c has shape \[6, 3, 5\].*\[B, T, H, M\]"),
    "short v": ("v", lambda x: x[:, 1:], ValueError, r"v has shape \[2, 5, 3, 4\].*T=6"),
    "fewer modes": ("b", lambda x: x[..., 1:], ValueError, r"b has shape.*M=5"),
    "step per mode": ("step", lambda x: x[..., None], ValueError, r"step has shape \[2, 6, 3, 1\].*H=3"),
    "rates of one head": ("rates", lambda x: x[0], ValueError, r"rates has shape \[5\].*\[H=3, M=5\]"),
    "turned state": ("initial_state", lambda x: x.mT, ValueError, r"initial_state has shape \[2, 3, 4, 5\]"),
    "negative step": ("step", lambda x: with_entry(x, -0.5), ValueError, r"step\[1, 1, 1\] is -0\.5"),
    "nan step": ("step", lambda x: with_entry(x, torch.nan), ValueError, r"step\[1, 1, 1\] is nan"),
    "infinite step": ("step", lambda x: with_entry(x, torch.inf), ValueError, r"step\[1, 1, 1\] is inf"),
    "negative rate": ("rates", lambda x: with_entry(x, -2.0), ValueError, r"rates\[1, 1\] is -2\.0"),
    "nan rate": ("rates", lambda x: with_entry(x, torch.nan), ValueError, r"rates\[1, 1\] is nan"),
}


@pytest.mark.parametrize("name, spoil, error, message", WRONG.values(), ids=WRONG)
def test_a_wrong_input_is_named_with_its_cure(name, spoil, error, message, tokens):
    inputs = tokens(6)
    with pytest.raises(error, match=message):
        frac_scan(**(inputs | {name: spoil(inputs[name])}))


@pytest.mark.parametrize("size, message", [("modes", r"M=0 modes"), ("width", r"P=0 channels")])
def test_there_is_at_least_one_mode_and_one_channel(size, message, tokens):
    with pytest.raises(ValueError, match=message):
        frac_scan(**tokens(6, **{size: 0}))


def test_the_step_checks_its_inputs_too(tokens):
    inputs = one_token(tokens(6))
    with pytest.raises(ValueError, match=r"state has shape \[2, 3, 4, 5\].*\[B=2, H=3, M=5, P=4\]"):
        frac_step(**(inputs | {"state": inputs["state"].mT}))
    with pytest.raises(ValueError, match=r"step\[1, 1\] is -1\.0"):
        frac_step(**(inputs | {"step": with_entry(inputs["step"], -1.0)}))


def test_bfloat16_keeps_time_and_states_in_float32(tokens, off):
    inputs = tokens(20, dtype=torch.float32)
    rounded = inputs | {name: inputs[name].bfloat16() for name in ("c", "b", "v")}
    y, state = frac_scan(**rounded)
    want_y, want = frac_scan(**{name: x.float() for name, x in rounded.items()})
    assert y.dtype == torch.bfloat16 and off(y, want_y) <= 2e-3
    assert state.dtype == torch.float32 and torch.equal(state, want)
    with pytest.raises(TypeError, match=r"step is torch\.bfloat16.*must be torch\.float32"):
        frac_scan(**rounded | {"step": rounded["step"].bfloat16()})


def test_inputs_are_left_as_they_were(tokens):
    inputs = tokens(20)
    before = {name: x.clone() for name, x in inputs.items()}
    frac_scan(**inputs)
    frac_step(**one_token(inputs))
    assert all(torch.equal(inputs[name], x) for name, x in before.items())
