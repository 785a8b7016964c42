"""The most probable missing facts of a graph: all questions worth asking are asked, and the best answers kept."""

from dpmpn.complete.completer import CompletionWork, checked_request, complete, finished

__all__ = ["CompletionWork", "checked_request", "complete", "finished"]
