"""dpmpn: answers questions on a knowledge graph and shows its reasoning."""
