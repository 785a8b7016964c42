"""The most probable missing facts of a graph: all questions worth asking are asked, and the best answers kept."""

from dpmpn.complete.completer import checked_request, complete

__all__ = ["checked_request", "complete"]
