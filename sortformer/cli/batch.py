"""Batches of recordings: error isolation, progress bar, summary, and a clean stop at an interrupt."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from sortformer.cli.console import about, bar, named, say, sentence, unforeseen
from sortformer.cli.interrupt import INTERRUPTED, Interrupt, interrupts, unwrapped
from sortformer.cli.recordings import Recording, once, recordings
from sortformer.cli.results import Results
from sortformer.errors import InputError, SortformerError, counted, lacks_space
from sortformer.warned import warned

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from sortformer.annotation import Diarization
    from sortformer.diarizer import Progress

__all__ = ["Job", "run"]

Job: TypeAlias = "Callable[[Recording, Progress], Diarization]"

_SHARES = {"read": 0.1, "model": 0.85, "turns": 0.05}
"""Shares of the stages in a recording's part of the bar."""

_MOST_NAMED = 10  # in the last line; each of all that failed has a line of its own before

_LINE_EVERY_S = 60.0  # without a terminal there is no bar


def run(
    arguments: Iterable[str],
    results: Results,
    load: Callable[[], Job],
    *,
    only: Mapping[str, Any] | None = None,
    shard: tuple[int, int] = (1, 1),
    quiet: bool = False,
) -> int:
    """Diarize the recordings of the arguments, write the results, and return the exit code: 0, 1 or 130.

    Args:
        load: returns the function that diarizes a recording; called only if there is work.
        only: fields of the only recording, which replace those of its file.
        shard: number of this run, from 1, and number of runs; each processes its share of the recordings.
        quiet: no bar, no lines that count, and no summary; errors and warnings stay.

    Raises:
        InputError: when the folder of the results cannot be created, the model cannot be loaded, or ``only`` is given
            for several recordings, or has a window and the recording is one.
    """
    tally = _Tally()
    found: list[Recording] = []
    for argument in arguments:
        with tally.past_errors(str(Path(argument))):  # as errors name it: without the slash after a folder
            found.extend(recordings(argument))
    found = once(found)
    if only:
        if len(found) > 1:
            raise InputError(f"--uri, --start and --end are for one recording, not {len(found)}: use a manifest")
        if "offset_s" in only and any(each.is_window() for each in found):
            raise InputError("the manifest selects a window already: leave out --start and --end")
        found = [replace(each, **only) for each in found]
    several = len(found) + len(tally.failed) > 1
    results = replace(results, several=several)
    results.prepare()
    refused = results.sharing(found)
    todo: list[tuple[Recording, tuple[str, ...]]] = []
    number, shards = shard
    part = found[number - 1 :: shards]
    if found and not part:
        say(f"note: shard {number} of {shards} is empty: {counted(len(found), 'recording')} in all")
    for recording in part:
        with tally.past_errors(recording.path if recording in refused else recording.name):
            if recording in refused:
                raise refused[recording]
            wanted = results.wanted(recording)
            todo += [(recording, wanted)] if wanted else []
            tally.skipped += not wanted
    try:
        if todo:
            _work(todo, results, load, tally, quiet)
    except KeyboardInterrupt:
        say(f"interrupted: {tally.finished} of {counted(len(todo), 'recording')} finished")
        return INTERRUPTED
    if not quiet and (results.folder is not None or several):
        say(tally.summary())
    return 1 if tally.failed else 0


def _work(
    todo: list[tuple[Recording, tuple[str, ...]]],
    results: Results,
    load: Callable[[], Job],
    tally: _Tally,
    quiet: bool,
) -> None:
    with unwrapped(), bar(quiet) as shown, interrupts() as interrupt:
        task = shown.add_task("loading the model", total=len(todo))
        job, full, said_s = load(), False, monotonic()
        for index, (recording, wanted) in enumerate(todo):
            if shown.disable and not quiet and index and monotonic() - said_s >= _LINE_EVERY_S:
                say(f"{index} of {counted(len(todo), 'recording')} processed")
                said_s = monotonic()
            progress = _progress(recording, shown, task, index, interrupt)
            with tally.past_errors(recording.name), about(recording.name), warned() as faults:
                if results.skip_existing and not (wanted := results.wanted(recording)):
                    tally.skipped += 1  # another run with the same folder has done it in the meantime
                    continue
                progress("read", 0.0, None)
                result = job(recording, progress)
                shown.stop()  # the result may be printed to the same terminal
                try:
                    results.write(recording, result, wanted, first=tally.finished == 0, warned=faults)
                    tally.finished += 1
                except (InputError, OSError) as error:
                    full = lacks_space(error)
                    raise
                finally:
                    shown.start()
            if full:  # the results of the others would be lost, too
                left = len(todo) - index - 1
                if left:
                    say(f"stopped: {counted(left, 'recording')} not processed, as results cannot be stored")
                return


def _progress(recording: Recording, shown: Bar, task: TaskID, index: int, interrupt: Interrupt) -> Progress:
    """Return a progress callback, which updates the bar and defers interrupts while a recording is decoded."""
    shares = dict[str, float]()

    def progress(stage: str, done: float, total: float | None) -> None:
        interrupt.hold(stage == "read" and not recording.piped)
        shares[stage] = _SHARES[stage] * min(1.0, done / total) if total else 0.0
        shown.update(task, description=recording.name, completed=index + sum(shares.values()))

    return progress


@dataclass(slots=True)
class _Tally:
    """Counts of the recordings by outcome."""

    finished: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def past_errors(self, name: str) -> Iterator[None]:
        """Report the error of a recording, and continue with the next, unless stdout is closed."""
        try:
            with unwrapped():
                yield
        except BrokenPipeError:
            raise
        except (SortformerError, OSError) as error:
            say(f"error: {named(sentence(error), name)}")
            self.failed.append(name)
        except Exception as error:  # one recording that exhausts the memory must not stop the others
            say(f"error: {name}: {unforeseen(error)}")
            self.failed.append(name)

    def summary(self) -> str:
        parts = [f"{counted(self.finished, 'recording')} diarized"]
        parts += [f"{self.skipped} skipped"] if self.skipped else []
        more = ", ..." * (len(self.failed) > _MOST_NAMED)
        parts += [f"{len(self.failed)} failed: {', '.join(self.failed[:_MOST_NAMED])}{more}"] if self.failed else []
        return ", ".join(parts)
