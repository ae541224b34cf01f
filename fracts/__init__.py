"""Time-series forecasting with a memory that decays as a power law.

Names load when first used, so that `import fracts` stays light.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fracts.baselines import ARFIMA as ARFIMA
    from fracts.baselines import ARIMA as ARIMA
    from fracts.baselines import ETS as ETS
    from fracts.baselines import GARCH as GARCH
    from fracts.baselines import HAR as HAR
    from fracts.baselines import STL as STL
    from fracts.baselines import Drift as Drift
    from fracts.baselines import Ensemble as Ensemble
    from fracts.baselines import Mean as Mean
    from fracts.baselines import Naive as Naive
    from fracts.baselines import SeasonalNaive as SeasonalNaive
    from fracts.baselines import Theta as Theta
    from fracts.baselines import WindowAverage as WindowAverage
    from fracts.checks import FitWarning as FitWarning
    from fracts.comparison import compare as compare
    from fracts.forecaster import FracForecaster as FracForecaster
    from fracts.ridge import FracRidge as FracRidge
    from fracts.rolling import backtest as backtest
    from fracts.search import FracSearch as FracSearch
    from fracts.versions import show_versions as show_versions

__version__ = "0.1.0"

_HOMES = {
    "ARFIMA": "fracts.baselines",
    "ARIMA": "fracts.baselines",
    "Drift": "fracts.baselines",
    "ETS": "fracts.baselines",
    "Ensemble": "fracts.baselines",
    "FitWarning": "fracts.checks",
    "FracForecaster": "fracts.forecaster",
    "FracRidge": "fracts.ridge",
    "FracSearch": "fracts.search",
    "GARCH": "fracts.baselines",
    "HAR": "fracts.baselines",
    "Mean": "fracts.baselines",
    "Naive": "fracts.baselines",
    "STL": "fracts.baselines",
    "SeasonalNaive": "fracts.baselines",
    "Theta": "fracts.baselines",
    "WindowAverage": "fracts.baselines",
    "backtest": "fracts.rolling",
    "compare": "fracts.comparison",
    "show_versions": "fracts.versions",
}
_ROOMS = ("datasets", "kernels", "memory", "plots", "scores")

__all__ = [*_HOMES, *_ROOMS]

# A checkout made without symbolic links (Windows' default) holds the two rooms one folder up.
if not (Path(__file__).parent / "kernels").is_dir():
    __path__.append(str(Path(__file__).parent.parent))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"fracts.{name}")
    raise AttributeError(f"module 'fracts' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
