"""The paper's tables and figures, made anew: one exhibit each, by one command each."""
