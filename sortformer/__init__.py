"""Speaker diarization with SortFormer: who spoke when, from a recording."""
