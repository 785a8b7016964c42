"""Work of thousands of questions: read from files, answered in parts that survive a kill, written as tables."""
