"""Comparison with embedding models: all trained under one budget of time, all measured by one evaluator."""
