"""The rooms of `examples/paper` import one another as a script there does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "paper"))
