"""File formats of diarizations: one module per format, with ``parse``, ``format``, ``read``, ``write``."""
