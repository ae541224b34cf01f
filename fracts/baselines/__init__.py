"""The classical models that every other must beat, one a file."""

from fracts.baselines.arfima import ARFIMA as ARFIMA
from fracts.baselines.arima import ARIMA as ARIMA
from fracts.baselines.drift import Drift as Drift
from fracts.baselines.ensemble import Ensemble as Ensemble
from fracts.baselines.ets import ETS as ETS
from fracts.baselines.garch import GARCH as GARCH
from fracts.baselines.har import HAR as HAR
from fracts.baselines.mean import Mean as Mean
from fracts.baselines.naive import Naive as Naive
from fracts.baselines.seasonal_naive import SeasonalNaive as SeasonalNaive
from fracts.baselines.stl import STL as STL
from fracts.baselines.theta import Theta as Theta
from fracts.baselines.window_average import WindowAverage as WindowAverage
