"""From sources of facts to a dataset: numbered, split, labelled, written whole."""
