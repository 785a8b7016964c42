"""The most probable missing facts of a graph: which questions to ask, and how far to believe the answers."""

from dpmpn.complete.calibration import Calibration
from dpmpn.complete.completer import complete
from dpmpn.complete.measure import calibration_of
from dpmpn.complete.questions import Asking, Questions

__all__ = ["Asking", "Calibration", "Questions", "calibration_of", "complete"]
