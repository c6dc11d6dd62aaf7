"""Type checkers of those who use the package read its annotations (PEP 561)."""

from importlib.resources import files


def test_the_package_says_that_it_is_typed():
    assert (files("sortformer") / "py.typed").is_file()
