"""Files: one safetensors file for a fitted model, its JSON in the header, no pickle and no code.

The header holds, under `fracts`, the version of the format, the versions of what wrote it, and the model as
`fracts.packing` writes it, and a digest of all this and of the arrays, so that a damaged file is told from a
good one. A file is written aside, flushed to the disk and renamed: whoever is stopped half way
leaves the old file as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.numpy

from fracts.packing import Arrays, pack, unpack
from fracts.versions import installed_versions

if TYPE_CHECKING:
    from _typeshed import StrPath

FORMAT = 1  # a change that an older reader would get wrong raises it
_CODE = [b"PK", *(bytes([0x80, protocol]) for protocol in range(2, 6))]  # torch's files and pickles begin so


def write(model: Any, path: StrPath) -> None:
    """Put `model`, a record, into the file at `path`: all of it, or nothing.

    Raises TypeError where the model holds what has no form in a file, OSError where the disk refuses.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to save {path.name} in. Make it first.")
    arrays: Arrays = {}
    packed = pack(model, type(model).__name__, arrays)
    told = {"format": FORMAT, "versions": installed_versions(), "model": packed}
    told["sha256"] = _digest(told, arrays)
    header = {"fracts": json.dumps(told, allow_nan=False)}
    _replace(path, safetensors.numpy.save(arrays, header))


def read(path: StrPath) -> Any:
    """The record in the file at `path`.

    Raises ValueError for a file that `write` did not write, or that changed since; OSError without a file.
    """
    path = Path(path)
    with path.open("rb") as file:
        start = file.read(2)
    try:
        with safetensors.safe_open(path, framework="numpy") as content:
            header = content.metadata() or {}
            arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        return _checked(header, arrays)
    except RecursionError as error:
        raise ValueError(f"{path} cannot be read as a file of fracts: it is nested too deeply.") from error
    except (safetensors.SafetensorError, ValueError, TypeError, MemoryError) as error:
        reason = f"{error}"
        if start in _CODE:
            reason = "it seems to be a pickle, or of torch, and could run code."
        raise ValueError(
            f"{path} cannot be read as a file of fracts: {reason} Write it anew with `model.save(path)`."
        ) from error


def fingerprint(value: Any) -> str:
    """A digest of all that `value`, of the kinds that a file holds, is made of: equal for equal weights only.

    Examples
    --------
    >>> fingerprint({"d": np.array([0.4])}) == fingerprint({"d": np.array([0.4])})
    True
    >>> fingerprint({"d": np.array([0.4])}) == fingerprint({"d": np.array([0.5])})
    False
    """
    arrays: Arrays = {}
    return _digest(pack(value, "", arrays), arrays)


def _checked(header: dict[str, str], arrays: Arrays) -> Any:
    if "fracts" not in header:
        raise ValueError("it is a safetensors file of another program.")
    told = json.loads(header["fracts"])
    written = told["versions"]["fracts"] if isinstance(told, dict) and "format" in told else None
    if written is None or not isinstance(told["format"], int):
        raise ValueError("its header names no format.")
    if told["format"] > FORMAT:
        raise ValueError(
            f"it has format {told['format']}, of fracts {written}; this release reads up to {FORMAT}. "
            "Install a newer fracts."
        )
    if told.pop("sha256", None) != _digest(told, arrays):
        raise ValueError("its contents changed since they were written.")
    return unpack(told["model"], arrays)


def _digest(tree: Any, arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(tree).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _replace(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be flushed
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
