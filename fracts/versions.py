"""What is installed: the versions that belong into a report of a fault.

Read from the metadata of the packages, so that nothing heavy is imported.
"""

import platform
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
    for package in PACKAGES:
        print(f"{package:13} {_installed(package)}")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
