"""The engine: batches of queries, growing and pruning their subgraphs, on all cores and within memory."""
