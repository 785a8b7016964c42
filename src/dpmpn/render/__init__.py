"""Pictures of explanations: the full and the pruned subgraph side by side, as SVG and PNG."""
