"""What is installed: the versions that belong into a report of a fault.

Read from the metadata of the packages, so that nothing heavy is imported.
"""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "fracts",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "torch",
    "triton",
    "lightning",
    "matplotlib",
    "pyelw",
    "safetensors",
    "joblib",
    "statsmodels",
    "arch",
)


def show_versions() -> None:
    """Print the versions of Python, the system, fracts and the packages it stands on.

    Examples
    --------
    >>> show_versions()
    python        ...
    system        ...
    fracts        ...
    """
    print(f"{'python':13} {platform.python_version()}")
    print(f"{'system':13} {platform.platform()}")
    for package, number in installed_versions().items():
        print(f"{package:13} {number}")


def installed_versions() -> dict[str, str]:
    """Version of each package in `PACKAGES`.

    Examples
    --------
    >>> list(installed_versions())[0]
    'fracts'
    """
    return {package: _installed(package) for package in PACKAGES}


@cache
def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
