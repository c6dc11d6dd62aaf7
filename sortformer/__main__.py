"""``python -m sortformer``: the same as the command ``sortformer``."""

from sortformer.cli import main

main()
