"""Triples in, KnowledgeGraph out: readers, vocabularies, dataset registry, splits."""
