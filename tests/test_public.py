"""What `import fracts` promises: its names, its version, its report of versions."""

from importlib.metadata import version

import pytest

import fracts


@pytest.mark.parametrize("name", fracts.__all__)
def test_every_public_name_resolves_and_is_listed(name):
    assert getattr(fracts, name) is not None
    assert name in dir(fracts)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'fracts' has no attribute 'FracForcaster'"):
        fracts.FracForcaster  # noqa: B018


def test_the_version_is_that_of_the_installed_package():
    assert fracts.__version__ == version("fracts")


def test_show_versions_tells_every_package_and_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr("fracts.versions.PACKAGES", ("fracts", "torch", "no-such-package"))
    fracts.show_versions()
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert list(told) == ["python", "system", "fracts", "torch", "no-such-package"]
    assert told["torch"] == version("torch")
    assert told["no-such-package"] == "not installed"
