"""Errors of the system are reported with a remedy."""

import errno

from sortformer.cli.console import sentence
from sortformer.errors import listed, refusal


def test_a_refusal_says_what_to_do():
    refused = PermissionError(errno.EACCES, "Permission denied", "meetings")
    assert sentence(refused) == "meetings: Permission denied (ask its owner for access, or choose another path)"


def test_what_nobody_can_help_is_only_said():
    assert refusal(OSError(errno.EIO, "Input/output error")) == "Input/output error"
    assert refusal(OSError("no number")) == "no number"


def test_of_many_recordings_five_are_named():
    assert listed("abcde") == "'a', 'b', 'c', 'd', 'e'"
    assert listed("abcdef") == "'a', 'b', 'c', 'd', 'e' and 1 more"
