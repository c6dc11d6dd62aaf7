"""What holds for all tests, as test machines are shared.

Neither examples nor their making have a deadline, and torch's threads, once it is loaded, wait for each other asleep,
as those of the command do: beside another run the tests would take many times as long.
"""

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("GOMP_SPINCOUNT", "1000")

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
