"""The simple rules that every model must beat, one a file."""

from fracts.baselines.arfima import ARFIMA as ARFIMA
from fracts.baselines.mean import Mean as Mean
from fracts.baselines.naive import Naive as Naive
from fracts.baselines.seasonal_naive import SeasonalNaive as SeasonalNaive
