"""What made a result: the versions of the programs, and the machine."""

import os
import platform
from importlib import metadata
from pathlib import Path

_PACKAGES = ("dpmpn", "torch", "numpy", "numba", "safetensors")


def versions(*more: str) -> dict[str, str]:
    """Versions of what computes, of `more` packages, of Python and of the system."""
    packages = {name: metadata.version(name) for name in (*_PACKAGES, *more)}
    return packages | {"python": platform.python_version(), "platform": platform.platform()}


def machine() -> dict[str, str | int]:
    """The processor and its cores."""
    return {"processor": processor(), "cores": os.cpu_count() or 1}


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
