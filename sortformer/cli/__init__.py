"""The command line: parse, call one public function, print. Nothing here that Python users cannot reach otherwise."""

from sortformer.cli.app import main

__all__ = ["main"]
