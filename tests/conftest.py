"""Property tests draw the same cases every time, a busy machine does not fail them, and Ctrl-C is heard."""

import os
import signal

from hypothesis import Phase, settings

# Other cores have tests of their own; threads that wait for them made small sums take ten times as long. Libraries read
# this when they are loaded. What a test asks of `threads` it has all the same.
os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
os.environ["DPMPN_CHECK_SHAPES"] = "1"  # of what enters an operation

settings.register_profile("same-every-time", derandomize=True, deadline=None)
settings.load_profile("same-every-time")
# For those who ask only whether a test fails (--hypothesis-profile), and not for the smallest case that makes it.
settings.register_profile("first-failure", phases=[Phase.explicit, Phase.generate])

# What a shell runs in the background ignores Ctrl-C and, with nohup, SIGHUP; so would programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
