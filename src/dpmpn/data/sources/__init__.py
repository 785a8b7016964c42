"""Where facts come from: one module per format, each giving batches of names."""
