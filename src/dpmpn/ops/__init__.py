"""Pure functions on arrays and tensors: no state, no model; each has a slow, obvious twin that is its test."""
