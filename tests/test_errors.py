"""What the system refuses is said with what can be done about it."""

import errno

from sortformer.cli.console import sentence
from sortformer.errors import refusal


def test_a_refusal_says_what_to_do():
    refused = PermissionError(errno.EACCES, "Permission denied", "meetings")
    assert sentence(refused) == "meetings: Permission denied (have its owner allow it, or choose another place)"


def test_what_nobody_can_help_is_only_said():
    assert refusal(OSError(errno.EIO, "Input/output error")) == "Input/output error"
    assert refusal(OSError("no number")) == "no number"
