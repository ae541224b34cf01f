"""Packages that only some models need: there, or an error that says how to get them."""

from importlib.util import find_spec


def needed(package: str, model: str, extra: str = "classical") -> None:
    """ModuleNotFoundError with a cure unless `package` is installed.

    Examples
    --------
    >>> needed("numpy", "Naive")
    """
    if find_spec(package) is None:
        raise ModuleNotFoundError(
            f"{model} needs the package {package}, which is not installed. "
            f"It comes with the extra: pip install 'fracts[{extra}]'."
        )
