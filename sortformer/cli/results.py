"""Output of results: to stdout, or into a folder, with one file per recording and format."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sortformer.annotation import Diarization
from sortformer.cli.console import say
from sortformer.cli.recordings import Recording, namesakes
from sortformer.cli.transcripts import Transcripts
from sortformer.errors import InputError, refusal
from sortformer.formats.kinds import FORMATS, WORDY
from sortformer.formats.names import composed, without_white_space
from sortformer.formats.write import check_folder, ignores_case, write_text
from sortformer.intervals import Regions, clipped
from sortformer.warned import warn

__all__ = ["Results", "check_out", "say_as_in_rttm"]


def check_out(out: Path, overwrite: bool, *, folder: bool = False, source: str | None = None) -> None:
    """Check, before the work starts, that its only result can be written: a file, or the folder of a model.

    Raises:
        InputError: when it exists and ``overwrite`` is not set, is the ``source`` or of the wrong kind, or cannot be
            written.
    """
    if source is not None and _same(out, Path(source)):
        raise InputError(f"{out} is the input, not a result: give another name with -o")
    if out.exists() and not (out.is_file() or out.is_dir()):
        raise InputError(f"{out} is a pipe or a device: give a file name with -o")
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists already; use --overwrite, or another name with -o")
    if out.exists() and out.is_dir() != folder:
        raise InputError(f"{out} is a {'file' if folder else 'folder'}: give another name with -o")
    check_folder(out.parent)


def say_as_in_rttm(*names: str) -> bool:
    """Report the first of these names, of recordings and speakers, that RTTM writes differently, if there is one."""
    for name in names:
        written = without_white_space(name)
        if written != composed(name):
            say(
                f"note: {name!r} is written as {written!r} in RTTM, which allows no white space or control characters; "
                "likewise other names"
            )
            return True
    return False


@dataclass(slots=True)
class Results:
    """The output settings; files are written atomically, JSON of ``several`` recordings on stdout as JSON lines.

    ``transcripts`` is the transcript of a recording, a CTM of several, or a folder with a file for each. With
    ``regions`` by the ids of recordings, only the parts in them are written.

    Raises:
        InputError: when the settings contradict each other.
    """

    folder: Path | None
    formats: tuple[str, ...]
    overwrite: bool = False
    skip_existing: bool = False
    several: bool = False
    transcripts: Path | None = None
    regions: Mapping[str, Regions] | None = None
    _transcripts: Transcripts | None = field(init=False, repr=False)
    _noted: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        chosen = {name: FORMATS[name] for name in self.formats}
        wordy = [name for name, format in chosen.items() if format.turns is None]
        if wordy and self.transcripts is None:
            raise InputError(f"-f {wordy[0]} needs words: give a transcript with --words")
        if self.transcripts is not None and not any(format.words for format in chosen.values()):
            raise InputError(f"these formats cannot store the words of --words: choose one of {WORDY} with -f")
        alone = [name for name, format in chosen.items() if format.between is None]
        if alone and self.several and self.folder is None:
            raise InputError(f"only one recording can be written to stdout as {alone[0]}: give a folder with -o")
        if self.folder is not None and not self.folder.is_dir() and self.folder.suffix.lower()[1:] in FORMATS:
            raise InputError(
                f"-o takes a folder, but {self.folder} is named like a result file: for a single recording leave out "
                f"-o, and add > {self.folder}"
            )
        self._transcripts = None if self.transcripts is None else Transcripts(self.transcripts, self.several)
        if self.overwrite and self.skip_existing:
            raise InputError("give either --overwrite or --skip-existing, not both")
        if self.folder is None and self.skip_existing:
            raise InputError("--skip-existing looks for results in a folder: give one with -o")
        if self.folder is None and self.overwrite:
            raise InputError("--overwrite replaces results in a folder: give one with -o")
        if self.folder is None and len(self.formats) > 1:
            raise InputError("only one format can be written to stdout: give a folder with -o")

    def prepare(self) -> None:
        """Create the folder, so that errors appear before the work starts.

        Raises:
            InputError: when it cannot be created or written to.
        """
        if self.folder is not None:
            check_folder(self.folder)

    def sharing(self, found: Iterable[Recording]) -> dict[Recording, InputError]:
        """Return an error for each recording whose results would be in the same files as those of another."""
        extensions = [FORMATS[name].extension for name in self.formats]
        return namesakes(found, extensions, ignore_case=self.folder is not None and ignores_case(self.folder))

    def wanted(self, recording: Recording) -> tuple[str, ...]:
        """Return the formats that are still to be written for a recording.

        Raises:
            InputError: when a file exists and is neither to be overwritten nor skipped, is the transcript, the input
                or another program's, or cannot have that name; or when the recording, if not all is there, has no
                usable transcript, or no regions.
        """
        there = [name for name in self.formats if self.folder is not None and _is_there(self._path(recording, name))]
        missing = tuple(name for name in self.formats if name not in there)
        if self.skip_existing and not missing:
            self._check_ours(recording, there)
            return ()
        if self.regions is not None and self._regions(recording) is None:
            raise InputError(f"the UEM has no regions for {recording.id!r}: add them, or leave out --uem")
        said = None if self._transcripts is None else self._transcripts.check(recording)
        for source, what in ((said, "the transcript"), (recording.source, "the input")):
            for path in (self._path(recording, name) for name in there):
                if isinstance(source, Path) and _same(path, source):
                    raise InputError(f"{path} is {what}, not a result: give another folder with -o")
        if self.overwrite:
            return self.formats
        if there and not self.skip_existing:
            raise InputError(
                f"{self._path(recording, there[0])} exists already; use --overwrite, --skip-existing or another folder"
            )
        self._check_ours(recording, there)
        return missing

    def write(
        self,
        recording: Recording,
        result: Diarization,
        formats: tuple[str, ...],
        *,
        first: bool = True,
        warned: list[str] | None = None,
    ) -> None:
        """Write a result in these formats; on stdout, all but the first follow a separator, without a header.

        ``warned`` lists the warnings given while it was made, and grows by those given here.
        """
        regions = self._regions(recording)
        words, whole = None, result
        if regions is not None:
            result = _inside(result, regions)
        if self._transcripts is not None and any(FORMATS[name].words for name in formats):
            words = self._transcripts.words(recording, whole, regions)  # by all turns, even outside of regions
        if warned is not None:
            result = result.warned(warned, recording.path)
        if "rttm" in formats and not self._noted:  # once a run: hundreds of notes would hide warnings
            self._noted = say_as_in_rttm(recording.name, *result.speakers)
        for name in formats:
            format = FORMATS[name]
            if self.folder is not None:
                path = self._path(recording, name)
                try:
                    write_text(path, format.text(result, words), overwrite=self.overwrite)
                except InputError:
                    if not (self.skip_existing and path.exists()):  # another run may have written it in the meantime
                        raise
                continue
            if format.printed is None:
                content = format.text(result, words)
            else:
                ascii_only = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
                content = format.printed(result, self.several, ascii_only, words)
            sys.stdout.write(content if first else f"{format.between}{content.removeprefix(format.header)}")
            sys.stdout.flush()

    def _check_ours(self, recording: Recording, there: Iterable[str]) -> None:
        """Check that a JSON file that is there is a result: transcripts of other programs have the same name."""
        if "json" in there:
            path = self._path(recording, "json")
            with path.open("rb") as file:
                if b'"schema_version"' not in file.read(100):
                    raise InputError(f"{path} is another program's, not a result: give another folder with -o")

    def last_word_s(self, recording: Recording) -> float:
        """Return when the last word of a recording's transcript ends, in seconds; 0 without one."""
        return 0.0 if self._transcripts is None else self._transcripts.last_word_s(recording)

    def _regions(self, recording: Recording) -> Regions | None:
        """Return the regions of a recording or, for a window that is not listed, of its file; None if neither is."""
        known = self.regions or {}
        return next((known[name] for name in recording.ids if name in known), None)

    def _path(self, recording: Recording, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{recording.name}.{FORMATS[name].extension}"


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _is_there(path: Path) -> bool:
    """Return whether a file exists; an InputError if it is impossible, for example because its name is too long."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {refusal(error)}; rename the recording, or name it with --uri, or with "
            "'uniq_id' in a manifest"
        ) from error
    return True


def _inside(result: Diarization, regions: Regions) -> Diarization:
    """Return the part in the regions of a UEM; warn if it is empty."""
    kept = result.within(regions)
    if not clipped(regions, 0.0, result.duration):
        warn(f"no region of the UEM lies within {result.uri}, which ends at {result.duration:.2f} s", stacklevel=2)
    elif result.turns and not kept.turns:
        warn(f"nobody speaks in the regions of the UEM of {result.uri}", stacklevel=2)
    return kept
