"""What holds for all tests: no deadline on single examples, because machines that test are shared and slow to start."""

from hypothesis import settings

settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
