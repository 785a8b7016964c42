"""Pre-training: one set of weights learnt from many graphs, for graphs that it has never seen."""
