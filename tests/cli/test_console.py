"""Messages, also while a progress bar is shown."""

import pytest

from sortformer.cli.console import TRACEBACK, bar, say, show_warning, unforeseen


def test_a_message_above_a_bar_is_one_line(capsys, monkeypatch):
    """A path that is wrapped at the terminal's width cannot be copied from it."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich can tell
    monkeypatch.setenv("COLUMNS", "40")
    message = f"error: {'a/long/path/' * 8}of.wav cannot be read as audio"
    with bar(quiet=False) as progress:
        progress.add_task("loading the model", total=None)
        say(message)
    assert message in capsys.readouterr().err


def test_what_a_terminal_would_obey_is_escaped(capfd):
    """The name of an upload is chosen by the client."""
    say("warning: no speech found in \x1b[2J\x9b1m\ntalk\u2028 日本\u3000é.wav")
    assert capfd.readouterr().err == "warning: no speech found in \\x1b[2J\\x9b1m\\ntalk\\u2028 日本\u3000é.wav\n"


@pytest.mark.parametrize(
    ("category", "shown"),
    [
        (UserWarning, "warning: it is old\n"),
        (DeprecationWarning, ""),
        (PendingDeprecationWarning, ""),
        (RuntimeWarning, "nowhere.py:3: RuntimeWarning: it is old\n"),
    ],
)
def test_what_only_developers_can_mend_is_not_shown(capfd, category: type[Warning], shown: str):
    show_warning(category("it is old"), category, "nowhere.py", 3)
    assert capfd.readouterr().err == shown


@pytest.mark.parametrize("wanted", ["", "1"])
def test_the_traceback_of_an_unexpected_error_is_shown_where_it_is_wanted(capfd, monkeypatch, wanted: str):
    monkeypatch.setenv(TRACEBACK, wanted)
    assert "(ZeroDivisionError: by zero)" in unforeseen(ZeroDivisionError("by zero"))
    assert capfd.readouterr().err == ("ZeroDivisionError: by zero\n" if wanted else "")
