"""Keeping freed memory for the next batch.

Every batch allocates and frees arrays of some megabytes. The C library would give each back to the system and ask for
it again, page by page, which takes a good part of the time.
"""

import ctypes
import functools
import platform

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # names of mallopt(3)
_LARGEST_KEPT = 32 << 20  # bytes of one array; glibc takes no more
_KEPT, _ASKED_FOR_AT_ONCE = 1 << 30, 64 << 20


@functools.cache
def keep_freed_memory() -> None:
    """Let this process keep about a gigabyte that it has freed; arrays above 32 MiB go back at once, as ever.

    Without effect where the C library is not glibc.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
    libc.mallopt(_TRIM_THRESHOLD, _KEPT)
    libc.mallopt(_TOP_PAD, _ASKED_FOR_AT_ONCE)
