"""What one request, and all of them together, may take; the model card tells them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that keep a server answering whatever is asked of it."""

    body_bytes: int = 1_000_000
    name_letters: int = 4096  # of an entity or a relation
    top: int = 1000  # answers to one question
    questions: int = 256  # of one ask-many
    top_of_many: int = 100  # answers to each of them
    found: int = 100  # entities of one search
    facts: int = 1000  # of one page of an entity's facts
    seconds: float = 30.0  # until a request is answered
    body_seconds: float = 10.0  # until its head has come, and again until its body has
    requests: int = 256  # being answered at the same time
    bodies: int = 256  # on their way at the same time
    waiting_questions: int = 512
    waiting_lookups: int = 128  # searches, facts, relations
    waiting_explanations: int = 32  # being told or drawn


LIMITS = Limits()
