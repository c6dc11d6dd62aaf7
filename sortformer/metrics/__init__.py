"""Diarization error rate, Jaccard error rate and the scoring protocols."""
