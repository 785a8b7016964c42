"""Ranking metrics and the protocols of the paper."""
