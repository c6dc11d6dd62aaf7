"""The transcripts of ``--words``, and the speakers of their words."""

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from sortformer.annotation import Diarization
from sortformer.cli.recordings import Recording
from sortformer.errors import InputError
from sortformer.formats import ctm, transcript
from sortformer.formats.folders import AUDIO_SUFFIXES
from sortformer.formats.names import composed
from sortformer.intervals import Regions, clipped
from sortformer.timed_words import timed_words
from sortformer.words import Word, assign_speakers, check_words

__all__ = ["Transcripts"]

_CTM = ".ctm"
_LANGUAGE = r"\.[a-z]{2,3}([-_][a-z0-9]+)*"  # .en, .pt-BR: as in the names of downloaded subtitles
_AUDIO = "|".join(map(re.escape, sorted(AUDIO_SUFFIXES)))  # .mp3: for turns, whose file is not the audio


class Transcripts:
    """The transcripts of recordings: a file for one, a CTM of ``several``, or a folder with a file for each.

    Raises:
        InputError: when there are several recordings, and the path is neither a folder nor a CTM.
    """

    def __init__(self, path: Path, several: bool) -> None:
        if several and not (path.is_dir() or path.suffix.lower() == _CTM):
            raise InputError(f"{path} is the transcript of one recording: for several, give --words a folder or a CTM")
        self.path, self.several = path, several
        self._ctm: dict[Path, dict[str, Any]] = {}  # each is read once

    def check(self, recording: Recording) -> Path:
        """Check, before the work starts, that a recording has a transcript, and return its file.

        Raises:
            InputError: when it has none, or it cannot be used.
        """
        path = self._file(recording)
        check_words(self._said(recording, path), str(path))
        return path

    def words(self, recording: Recording, result: Diarization, regions: Regions | None) -> list[Word]:
        """Return the words of a recording with their speakers; with ``regions`` only those inside."""
        if recording.is_window():
            window = recording.offset_s, result.duration
            regions = (window,) if regions is None else clipped(regions, *window)
        return assign_speakers(self._said(recording, self._file(recording)), result, within=regions)

    def last_word_s(self, recording: Recording) -> float:
        """Return when the last word of a recording ends, in seconds; 0 without words."""
        said, _ = timed_words(self._said(recording, self._file(recording)), 0.0)
        return max((end for _, end, _ in said), default=0.0)

    def _said(self, recording: Recording, path: Path) -> Any:
        """Return the words of a recording as read from the file."""
        if path.suffix.lower() != _CTM:
            return transcript.read(path)
        if path not in self._ctm:
            self._ctm[path] = ctm.read(path)
        of_several = self.several and path == self.path
        return transcript.words_of(self._ctm[path], str(path), recording.ids, of_several=of_several)

    def _file(self, recording: Recording) -> Path:
        """Return the transcript file; in a folder it is named after the recording or its file."""
        if not self.path.is_dir():
            if not self.path.is_file():
                raise InputError(f"{self.path} does not exist: --words needs a transcript of each recording")
            return self.path
        names = [recording.name]
        if isinstance(recording.source, Path) and not recording.is_window():
            names.append(recording.source.name)  # whisper.cpp writes talk.wav.json for talk.wav
        for name in map(composed, names):
            for suffix in transcript.SUFFIXES:
                if name + suffix in self._folder:
                    return self._folder[name + suffix]
        if (path := self._with_more(composed(recording.name))) is not None:
            return path
        kinds = " or ".join(f"{recording.name}{suffix}" for suffix in transcript.SUFFIXES)
        raise InputError(f"{self.path} has no {kinds}: --words needs a transcript of each recording")

    def _with_more(self, name: str) -> Path | None:
        """Return the file named after a recording and a language or a kind of audio, if any; refuse several."""
        kinds = "|".join(map(re.escape, transcript.SUFFIXES))
        wanted = re.compile(rf"{re.escape(name)}(?i:({_LANGUAGE}|{_AUDIO})({kinds}))")
        found = sorted(path for other, path in self._folder.items() if wanted.fullmatch(other))
        if len(found) > 1:
            raise InputError(f"{self.path} has {', '.join(path.name for path in found)}: keep only one for {name}")
        return found[0] if found else None

    @cached_property
    def _folder(self) -> Mapping[str, Path]:
        """The files of the folder by composed name, with lower-case suffixes."""
        return {composed(path.stem + path.suffix.lower()): path for path in self.path.iterdir() if path.is_file()}
