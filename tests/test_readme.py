"""The front pages stay true: the README's Python runs, its paths exist, its command is that of `.ci/run`."""

import re
from pathlib import Path

import pytest

import fracts

ROOT = Path(fracts.__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".ci").is_dir(), reason="needs the checkout: README.md lies beside fracts/"
)


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_python_of_the_readme_runs():
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page("README.md"), re.DOTALL | re.MULTILINE))
    quick = code.replace("random_state=0", "random_state=0, max_epochs=1")
    assert quick != code
    seen = {}
    exec(quick, seen)
    assert list(seen["table"].columns) == ["log_volatility", "log_volatility-lo-90", "log_volatility-hi-90"]
    assert seen["forecast"].index[0] == seen["future"].index[0]
    assert seen["model"].cutoff_ == seen["future"].index[-1] and seen["array"].shape == (5,)


def test_every_path_in_the_readme_exists():
    paths = re.findall(r"[`(]((?:examples|tests|fracts|kernels|datasets)/[\w./]+)[`)]", page("README.md"))
    assert {"examples/quickstart.py", "examples/quickstart.png"} <= set(paths)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_checks_end_with_the_test_command_of_the_readme():
    assert "\n    .venv/bin/pytest\n" in page("README.md")
    assert page(".ci/run").splitlines()[-1] == '"$bin/pytest"'


def test_the_citation_and_the_changelog_know_this_version():
    assert f"\nversion: {fracts.__version__}\n" in page("CITATION.cff")
    assert f"\n## {fracts.__version__}" in page("CHANGELOG.md")
