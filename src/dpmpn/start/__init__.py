"""From facts to an explorer: a run folder beside the facts, and the tuning of its model while it is asked."""
