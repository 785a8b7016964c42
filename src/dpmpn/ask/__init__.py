"""Asking a trained model: one question or many, with what each answer is known by."""
