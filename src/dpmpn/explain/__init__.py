"""Why an answer was given: the attention that came to it, read from the trace of one forward pass."""
