"""Long work in parts: done once, kept as they are done, shared between machines, and put together in their order."""
