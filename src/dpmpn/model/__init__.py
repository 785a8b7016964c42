"""IGNN, AGNN, attention flow, horizons, and the reasoner that runs the steps."""
