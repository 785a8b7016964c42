"""One model for any graph: what a relation is to the relation asked follows from how both occur in the graph."""
