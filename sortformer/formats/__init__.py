"""Files that hold turns: one module a format, with ``parse``, ``format``, ``read``, ``write``."""
