"""Type checkers of users read the package's annotations (PEP 561)."""

from importlib.resources import files


def test_the_package_says_that_it_is_typed():
    assert (files("sortformer") / "py.typed").is_file()
