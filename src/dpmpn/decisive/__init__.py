"""The facts that decide about an answer, found by asking again on changed graphs."""
