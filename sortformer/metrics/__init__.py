"""Diarization error rate, Jaccard error rate and the protocols under which they are counted."""
