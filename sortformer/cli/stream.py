"""``sortformer stream``: live diarization."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortformer.annotation import Diarization
from sortformer.cli.console import about, discard, say, usage_errors
from sortformer.cli.interrupt import INTERRUPTED, Interrupt, interrupts
from sortformer.cli.options import (
    Channel,
    Clustering,
    Decision,
    Device,
    Enroll,
    MinOff,
    MinOn,
    Model,
    Offset,
    Onset,
    PadOff,
    PadOn,
    Postprocess,
    Uri,
)
from sortformer.cli.results import check_out, say_as_in_rttm
from sortformer.cli.settings import clips, postprocessed
from sortformer.cli.sound import Sound
from sortformer.errors import InputError, refusal
from sortformer.formats import rttm
from sortformer.formats.kinds import FORMATS
from sortformer.formats.text import clock
from sortformer.formats.write import write_text
from sortformer.grid import SAMPLE_RATE
from sortformer.warned import warned

if TYPE_CHECKING:
    from sortformer.streaming import Session, Update

__all__ = ["stream"]

_LAG_S = 5.0  # lag of the model behind a live source from which on a warning is shown


@dataclass(frozen=True, slots=True)
class _Form:
    """An output format: of each update and of the last one, on stdout, and of the whole result, in a file."""

    new: Callable[[Session, Update], str]
    last: Callable[[Session, Update, Diarization], str]
    whole: Callable[[Diarization], str]


def _rttm_of(session: Session, update: Update, _: Diarization | None = None) -> str:
    return rttm.format(Diarization(update.turns, session.duration_s, session.uri)) if update.turns else ""


def _json_of(session: Session, update: Update) -> str:
    from sortformer.streaming.messages import update_message

    return json.dumps(update_message(session, update)) + "\n" if len(update.probs) else ""


def _last_json_of(session: Session, update: Update, result: Diarization) -> str:
    from sortformer.streaming.messages import done_message

    return json.dumps(done_message(session, update, result)) + "\n"


_RTTM = _Form(_rttm_of, _rttm_of, rttm.format)
_FORMS = {"rttm": _RTTM, "json": _Form(_json_of, _last_json_of, Diarization.to_json)}


def stream(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|-]",
            help="Recording, named pipe, or - for stdin (default: the microphone).",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write all turns to this file.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="|".join(_FORMS),
            help="Format of stdout and FILE; json on stdout also has tentative turns.",
        ),
    ] = "rttm",
    preset: Annotated[
        str | None,
        typer.Option(help="Latency: 30s, 10s, 1s or 0.3s with the package's model (default: about a second)."),
    ] = None,
    uri: Uri = None,
    max_speakers: Annotated[int | None, typer.Option(help="Maximum number of speakers.")] = None,
    channel: Channel = None,
    enroll: Enroll = None,
    rate: Annotated[
        int | None,
        typer.Option(
            metavar="HZ",
            help="Sample rate of raw mono samples or the microphone (default: 16000; of mulaw and alaw 8000).",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="s16le|f32le|mulaw|alaw",
            help="Encoding of raw samples from a pipe (default: s16le, unless a recording is detected).",
        ),
    ] = None,
    microphone: Annotated[
        str | None,
        typer.Option(metavar="NAME|NUMBER", help="A part of its name, or its number (default: the system's choice)."),
    ] = None,
    pace: Annotated[bool, typer.Option("--pace", help="Read a file in real time, as if it were live.")] = False,
    postprocess: Postprocess = None,
    decision: Decision = None,
    clustering: Clustering = None,
    onset: Onset = None,
    offset: Offset = None,
    pad_on: PadOn = None,
    pad_off: PadOff = None,
    min_on: MinOn = None,
    min_off: MinOff = None,
    model: Model = None,
    device: Device = "auto",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing result.")] = False,
) -> None:
    """Find who speaks, live: from a microphone, a pipe or a file.

    Each turn is printed to stdout as a line of RTTM as soon as it is final; the terminal shows who is speaking now. As
    JSON, each line has all that is new, including tentative turns. Ctrl-C, SIGTERM or closing the terminal ends the
    stream cleanly.
    """
    tuned = {"decision": decision, "onset": onset, "offset": offset}
    tuned |= {"pad_on_s": pad_on, "pad_off_s": pad_off, "min_on_s": min_on, "min_off_s": min_off}
    with usage_errors():
        voices = clips(enroll)
        form = form.strip().lower()
        if form not in _FORMS:
            raise InputError(f"a stream cannot be written as {form!r}; choose from {', '.join(_FORMS)}")
        sound = Sound(source, rate, channel, encoding, pace, microphone)
        if overwrite and out is None:
            raise InputError("--overwrite replaces a file: give one with -o")
        named = next((name for name in FORMATS if out and out.name.lower().endswith(f".{name}")), form)
        if named != form:
            fits = f"give -f {named}, or " if named in _FORMS else ""
            raise InputError(f"{out} is named like {named}, but would contain {form}: {fits}end its name in .{form}")
    if out is not None:
        check_out(out, overwrite, source=source)
    sound.check_stdin()

    with interrupts() as interrupt:
        from sortformer.diarizer import Diarizer

        diarizer = Diarizer.load(model, device)
        uri = uri or sound.uri
        with usage_errors():
            settings = postprocessed(diarizer.postprocess, postprocess, clustering, **tuned)
            session = diarizer.stream(preset, postprocess=settings, max_speakers=max_speakers, uri=uri)
        told = _FORMS[form]
        with warned() as faults:
            for name, clip in voices.items():
                session.enroll(name, clip)
            if told is _RTTM:
                say_as_in_rttm(uri, *voices)
            with about(uri, before=lambda: _status("")):
                failure = _follow(session, sound, interrupt, told, wanted=out is None)
                last, result = session.flush(), session.finish()
        result = result.warned(faults, sound.source or "", *map(str, voices.values()))
        _show(told.last(session, last, result), wanted=out is None)
        if out is not None:
            write_text(out, told.whole(result), overwrite=overwrite)
        if failure is not None:
            raise failure


def _follow(session: Session, sound: Sound, interrupt: Interrupt, told: _Form, *, wanted: bool) -> InputError | None:
    """Push the blocks of a source to a session and show the updates, until the source ends or an interrupt comes.

    An error of the source after its first audio is returned, not raised, so that the result so far is not lost.
    """
    lag_s = 0.0
    try:
        for block in sound.blocks():
            interrupt.hold(True)
            begun = time.monotonic()
            update = session.push(block)
            before, lag_s = lag_s, max(0.0, lag_s + time.monotonic() - begun - len(block) / SAMPLE_RATE)
            if sound.live and before <= _LAG_S < lag_s:
                _status("")
                say(f"warning: the model is {lag_s:.0f} s behind the audio: try a longer --preset")
            _show(told.new(session, update), wanted)
            _status(f"{clock(update.time_s)}  {', '.join(update.speaking) or '-'}")
            interrupt.hold(not sound.live)
    except KeyboardInterrupt:
        if not session.duration_s:
            say(f"interrupted before any audio of {session.uri}: nothing was written")
            raise typer.Exit(INTERRUPTED) from None
    except InputError as error:
        if not session.duration_s:
            raise
        return error
    finally:
        _status("")
    return None


def _show(lines: str, wanted: bool) -> None:
    """Print new lines; if stdout is closed, raise only if it is ``wanted``, being the only output."""
    if not lines:
        return
    _status("")
    try:
        sys.stdout.write(lines)
        sys.stdout.flush()
    except OSError as error:
        if wanted:
            raise
        if not isinstance(error, BrokenPipeError):
            say(f"warning: turns are no longer shown: stdout cannot be written ({refusal(error)})")
        discard(sys.stdout)


def _status(line: str) -> None:
    """Replace the last line of the terminal, cut to its width: a wrapped line could not be erased."""
    with contextlib.suppress(OSError):  # the terminal may be closed
        if sys.stderr.isatty():
            from rich.cells import cell_len, set_cell_size
            from rich.console import Console

            line = set_cell_size(line, min(cell_len(line), Console(stderr=True).width - 1))
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
