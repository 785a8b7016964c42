"""The paper's laboratory: its tables and figures made anew, comparisons with other models, and speed."""
