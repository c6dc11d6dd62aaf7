"""What holds for all tests, as test machines are shared.

Neither examples nor their making have a deadline, and torch's threads, once it is loaded, wait for each other asleep,
as those of the command do: beside another run the tests would take many times as long.
"""

from hypothesis import HealthCheck, settings

from sortformer.__main__ import spin_briefly

spin_briefly()

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
