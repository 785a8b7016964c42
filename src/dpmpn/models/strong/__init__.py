"""The stronger model: states of relations alone, gated messages, and a readout over all that was visited."""
