"""Is the `fracts` in the folder given whole, and the one that is imported? Run it away from the checkout."""

import sys
from importlib.metadata import version
from pathlib import Path

import fracts

target = Path(sys.argv[1])
assert Path(fracts.__file__) == target / "fracts" / "__init__.py", fracts.__file__
assert version("fracts") == fracts.__version__
assert (target / "fracts" / "py.typed").is_file()
assert not {"kernels", "datasets", "tests"} & {path.name for path in target.iterdir()}

for name in fracts.__all__:
    getattr(fracts, name)
for name in fracts.datasets.__all__:
    if name.startswith("load_"):
        assert len(getattr(fracts.datasets, name)()) > 0, name
print(f"{target.name}: {len(fracts.__all__)} names, every table")
