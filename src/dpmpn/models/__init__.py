"""The models: the paper's and the stronger one."""
