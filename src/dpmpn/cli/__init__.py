"""The command line: one module per command, none with logic that another face would need."""
