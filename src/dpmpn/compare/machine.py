"""What a comparison ran on, which its figures depend on."""

import os
import platform
from importlib import metadata
from pathlib import Path


def machine() -> dict[str, str | int]:
    """The processor, its cores and the versions of what computes."""
    packages = {name: metadata.version(name) for name in ("dpmpn", "torch", "numpy", "numba", "pykeen")}
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "platform": platform.platform(),
        "python": platform.python_version(),
        **packages,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
