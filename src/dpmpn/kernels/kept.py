"""Where compiled kernels are kept between runs; where they cannot be, each run compiles them again.

They are files that numba unpickles: only a folder that a program is installed in, the user's own cache and what
NUMBA_CACHE_DIR names are read, never one that others may write to.
"""

# mypy: allow-untyped-calls

import logging
import os
from contextlib import suppress
from functools import cache
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.sigutils import normalize_signature


class _OwnCache(UserWideCacheLocator):
    """The cache folder of a user; without a home it would be a folder `~` of whatever folder one stands in."""

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self.get_cache_path()):
            raise FileNotFoundError("there is no home folder")
        super().ensure_cache_path()


class _AsInstalled(InTreeCacheLocator):
    """Beside the module, writable or not: whoever installed the program may have compiled its kernels, too."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_AsInstalled":
        return cls(function, file)


class _Places(CompileResultCacheImpl):
    def __init__(self, function: Any) -> None:
        self._locator_classes = [UserProvidedCacheLocator, InTreeCacheLocator, _OwnCache, _AsInstalled]
        super().__init__(function)


class KeptKernels(FunctionCache):
    """A kernel's machine code on disk, for each signature; a cache that fails is no reason to end."""

    _impl_class = _Places

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for a signature, or None."""
        try:
            found = super().load_overload(signature, context)
        except Exception:  # a file that a power cut left half written is unpickled into any error
            with suppress(OSError):
                self.flush()
            return None
        # Two processes that write at once can leave an index of one that names a file of the other.
        wanted, _ = normalize_signature(signature)
        if found is None or tuple(found.signature.args) != tuple(wanted):
            _say_once("compiling for this machine, which can take a minute the first time")
            return None
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep what was compiled for a signature, where there is a place."""
        try:
            super().save_overload(signature, compiled)
        except OSError as error:
            _say_once(
                f"compiled kernels cannot be kept ({error.strerror or error}), so each start compiles them again, "
                "which can take a minute; set NUMBA_CACHE_DIR to a folder that only you can write to"
            )


@cache
def _say_once(what: str) -> None:
    logging.getLogger("dpmpn").warning("dpmpn: %s", what)
