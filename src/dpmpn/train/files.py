"""Moved to dpmpn.files."""

from dpmpn.files import *  # noqa: F403
