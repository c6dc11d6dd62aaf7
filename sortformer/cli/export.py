"""``sortformer export``: turns of any origin, such as corrected results, in other formats."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sortformer.annotation import Diarization, Turns, last_end, window_start
from sortformer.cli.console import about, say, usage_errors
from sortformer.cli.options import Formats, OutFolder, Overwrite, Regions, SkipExisting, Words
from sortformer.cli.recordings import Recording
from sortformer.cli.results import Results
from sortformer.errors import counted
from sortformer.formats.gather import TURN_SUFFIXES, files_in, name_in, results_in, uem_in, warn_of_others
from sortformer.formats.kinds import formats_named
from sortformer.formats.names import check_names_files

__all__ = ["export"]


def export(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES|DIRS",
            help=f"Turns: {', '.join(TURN_SUFFIXES)}, or folders of these.",
        ),
    ],
    formats: Formats,
    out: OutFolder = None,
    words: Words = None,
    uem: Regions = None,
    skip_existing: SkipExisting = False,
    overwrite: Overwrite = False,
) -> None:
    """Write turns in other formats, such as subtitles.

    With --words, a corrected result gets the words of its transcript. Output is on stdout, or files in a folder.
    Nothing is written before all turns and transcripts have been read.
    """
    regions = None if uem is None else uem_in(uem)
    with usage_errors():
        results = Results(out, formats_named(formats), overwrite, skip_existing, transcripts=words, regions=regions)
    results.prepare()
    found = _found(inputs)
    for error in results.sharing(found).values():
        raise error
    results = replace(results, several=len(found) > 1)
    wanted = {recording: names for recording in found if (names := results.wanted(recording))}
    for number, (recording, names) in enumerate(wanted.items()):
        turns = found[recording]
        with about(recording.name):
            whole = turns if isinstance(turns, Diarization) else _lasting(turns, recording, results)
            results.write(recording, whole, names, first=number == 0)
    if out is not None:
        skipped = f", {len(found) - len(wanted)} skipped" if len(found) > len(wanted) else ""
        say(f"{counted(len(wanted), 'recording')} exported{skipped}")


def _found(inputs: Sequence[Path]) -> dict[Recording, Turns]:
    """Return the turns of each recording in files and folders; warn of folders with turns of several kinds."""
    for path in inputs:
        warn_of_others(path)
    return {
        _recording(file, uri, turns): turns
        for path in inputs
        for file in files_in(path, *TURN_SUFFIXES)
        for uri, turns in results_in(file).items()
    }


def _recording(file: Path, uri: str, turns: Turns) -> Recording:
    """Return the recording of turns; a diarization knows its name, and where in its file it begins."""
    if not isinstance(turns, Diarization):
        return Recording(file, check_names_files(name_in(file, uri)))
    return Recording(file, check_names_files(turns.uri), window_start(turns))


def _lasting(turns: Turns, recording: Recording, results: Results) -> Diarization:
    """Return turns as a diarization that ends with the last turn or word, as the file does not say when."""
    return Diarization(tuple(turns), max(last_end(turns), results.last_word_s(recording)), recording.name)
