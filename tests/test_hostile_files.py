"""A file that is not as it should be is a clear error, and runs no code."""

import contextlib
import io
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from fracts import FracForecaster, Mean
from fracts.storage import _digest


def rewritten(change):
    """The file with its JSON and arrays as `change` makes them, and a digest that fits."""

    def make(data):
        header_size = int.from_bytes(data[:8], "little")
        told = json.loads(json.loads(data[8 : 8 + header_size])["__metadata__"]["fracts"])
        arrays = safetensors.numpy.load(data)
        del told["sha256"]
        text, arrays = change(json.dumps(told), arrays)
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            told = json.loads(text)
            text = json.dumps(told | {"sha256": _digest(told, arrays)})
        return safetensors.numpy.save(arrays, {"fracts": text})

    return make


def in_text(old, new):
    def change(text, arrays):
        assert old in text
        return text.replace(old, new), arrays

    return rewritten(change)


def in_array(name, change):
    return rewritten(lambda text, arrays: (text, arrays | {name: change(arrays[name])}))


class Pwned:
    def __reduce__(self):
        return os.system, ("touch pwned",)


def a_pickle(data):
    return pickle.dumps(Pwned())


def a_torch_file(data):
    import torch

    buffer = io.BytesIO()
    torch.save({"a": Pwned()}, buffer)
    return buffer.getvalue()


SUM = "Mean.learned._state.sum"
HOSTILE = {
    "nothing": (lambda data: b"", "header too small"),
    "half a header": (lambda data: data[:50], "header"),
    "half the arrays": (lambda data: data[:-10], "not fully covered"),
    "a tail": (lambda data: data + b"more", "not fully covered"),
    "an oversized header": (lambda data: b"\xff" * 7 + b"\x00" + data[8:], "header too large"),
    "a header beyond the file": (lambda data: (10**7).to_bytes(8, "little") + data[8:], "invalid"),
    "noise": (lambda data: bytes(range(256)) * 8, "header"),
    "a pickle": (a_pickle, "seems to be a pickle.*could run code"),
    "a torch file": (a_torch_file, "of torch, and could run code"),
    "another program": (lambda data: safetensors.numpy.save({"w": np.ones(2)}), "of another program"),
    "a flipped bit": (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "changed since they were written"),
    "no format": (in_text('"format": 1', '"form": 1'), "names no format"),
    "a later format": (
        in_text('"format": 1', '"format": 7'),
        "format 7, of fracts .* reads up to 1. Install",
    ),
    "no JSON": (in_text('{"format"', '{format"'), "Expecting property name"),
    "a list": (rewritten(lambda text, arrays: ("[1]", arrays)), "names no format"),
    "deep nesting": (
        rewritten(lambda text, arrays: ("[" * 100_000 + "]" * 100_000, arrays)),
        "nested too deeply",
    ),
    "a long number": (in_text('"horizon", 3', '"horizon", ' + "9" * 5000), "digits"),
    "a class of Python": (
        in_text('"record": "Mean"', '"record": "subprocess.Popen"'),
        "no class that a file may",
    ),
    "a function of ours": (
        in_text('"record": "Mean"', '"record": "show_versions"'),
        "no class that a file may",
    ),
    "a path for a name": (
        in_text('"record": "Mean"', '"record": "../../etc/passwd"'),
        "no class that a file may",
    ),
    "a path for an array": (
        rewritten(lambda text, arrays: (text.replace(SUM, "../../" + SUM), arrays)),
        "does not hold together",
    ),
    "an array not there": (in_text(SUM, "Mean.nothing"), "does not hold together: 'Mean.nothing'"),
    "an unknown parameter": (in_text('"horizon"', '"horison"'), "unexpected keyword argument 'horison'"),
    "an unknown form": (in_text('{"array"', '{"lambda"'), "no form that a file"),
    "float32": (in_array(SUM, np.float32), "is float32 of shape .* the file says float64"),
    "another shape": (in_array(SUM, lambda x: x[:, None]), "the file says float64 of shape"),
    "integers for floats": (
        rewritten(
            lambda text, arrays: (
                text.replace('"dtype": "<f8"', '"dtype": "<i8"'),
                {name: x.astype(np.int64) if x.dtype == np.float64 else x for name, x in arrays.items()},
            )
        ),
        "Shape.quantiles is an array of int64, which it cannot be",
    ),
    "a word for a number": (in_text('"step": 1', '"step": "rm -rf"'), "Clock.step is 'rm -rf'"),
    "a state that lacks an array": (in_text('["sum",', '["Sum",'), "parts do not fit together"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_that_is_not_as_it_should_be_is_a_clear_error(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, told = HOSTILE[kind]
    Mean(3).fit([[1.0, 2.0], [3.0, 5.0], [2.0, 4.0]]).save("model.safetensors")
    Mean.load("model.safetensors")
    path = Path("model.safetensors")
    path.write_bytes(make(path.read_bytes()))
    with pytest.raises(ValueError, match=f"(?s)model.safetensors .*{told}"):
        Mean.load(path)
    assert [one.name for one in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_network_larger_than_its_weights_is_refused_before_it_is_made(tmp_path):
    model = FracForecaster(1, width=8, n_heads=2, n_layers=1, max_epochs=1).fit(np.arange(50.0) % 7)
    model.save(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    (tmp_path / "model").write_bytes(in_text('["width", 8]', '["width", 80000000]')(data))
    with pytest.raises(ValueError, match="not those of 1 layers of width 80000000"):
        FracForecaster.load(tmp_path / "model")
