"""Property tests draw the same cases every time, and a busy machine does not fail them."""

from hypothesis import settings

settings.register_profile("same-every-time", derandomize=True, deadline=None)
settings.load_profile("same-every-time")
