"""The diarized transcripts of OpenAI's API, ``response_format="diarized_json"``, for programs that read these.

    {"task": "transcribe", "duration": s, "text": str, "segments": [{"type": "transcript.text.segment", "id": str,
     "start": s, "end": s, "text": str, "speaker": str}]}

as in its reference ("Create transcription", the diarized transcription object). Times are in seconds, in whole
milliseconds. Speakers keep the names of the result instead of ``A``, ``B``, ...
"""

import json
from collections.abc import Iterable

from sortformer.annotation import Diarization
from sortformer.formats.passages import Said
from sortformer.formats.segments import segments
from sortformer.formats.spacing import joined

__all__ = ["format"]


def format(recording: Diarization, words: Iterable[Said]) -> str:
    """Return one JSON document of the :func:`~sortformer.formats.segments.segments` of the words.

    Raises:
        InputError: when an item is not a word in the form of ``assign_speakers``.
    """
    spoken = list(segments(recording, words))
    found = {
        "task": "transcribe",
        "duration": recording.duration,
        "text": joined(segment.words for segment in spoken),
        "segments": [
            {
                "type": "transcript.text.segment",
                "id": f"seg_{number:03}",
                "start": segment.start,
                "end": segment.end,
                "text": segment.words,
                "speaker": segment.speaker,
            }
            for number, segment in enumerate(spoken, start=1)
        ],
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"
