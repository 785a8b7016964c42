"""All that writes an explanation: sentences, JSON, tables, Graphviz, pictures and the page."""
