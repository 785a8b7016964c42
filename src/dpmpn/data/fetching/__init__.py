"""Datasets of the registry over the network: listed, downloaded, checked, put in place whole."""
