"""What a dataset looks like: the columns of the paper's Table 1, shortest paths, and leaks between splits."""
