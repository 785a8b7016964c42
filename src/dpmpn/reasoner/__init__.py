"""The Python face: one object that is fitted, asked, completed, measured and kept."""
