"""Figures for readers: tables, plots, and what others published."""
