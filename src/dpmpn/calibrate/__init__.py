"""What a score is worth as a probability: learnt from facts that were held out, relation by relation."""
