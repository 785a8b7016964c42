"""Where facts come from: one module per kind of source, each giving batches of names."""
