"""Relations and types in the words of a sentence: `sold_in` is sold in, `official_language` has official language.

Names of relations follow a few habits of English. Where none is recognised, the name is said as it is.
"""

import re
from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PREPOSITIONS = _words(
    "about above across after against along among around as at before behind below beside between by during for from "
    "in inside into near of off on onto outside over per since through to towards under until upon via with within "
    "without"
)
_PLACES = _words("in at on")  # what happens there happens "where"
_AS_SAID = _words(  # what begins a verb
    "is are was were has have had can could does did will would may must should also not never often"
)
# Verbs that are named without an ending; other single words are taken for nouns.
_BARE_VERBS = _words(
    "activate affect belong bind border cause cite contain control cover create describe employ follow include "
    "influence inhibit interact know lead like love make manage mention need own play precede prevent produce regulate "
    "require see sell speak study supply support target teach treat use write"
)
_VERBS = (
    _BARE_VERBS
    | {verb + "s" for verb in _BARE_VERBS}
    | _words("carries does goes marries publishes teaches studies supplies employs buys lives works")
)
# "uses currency": what such a verb names is the other one's.
_OBJECTS = _words(
    "contains has holds includes makes needs owns plays produces requires sells speaks takes uses wears"
)
_WITH_NOUN = re.compile(f"({'|'.join(_OBJECTS)}|is in|is at|is on) (.+)")
_NO_VERB_IN_S = re.compile("(ss|us|is|ics)$")
_IRREGULAR = {"person": "people", "child": "children", "man": "men", "woman": "women", "series": "series"}
_LONG = 15  # letters of a word
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_TOKEN = re.compile(r"[\s_]+")


@dataclass(frozen=True)
class RelationWords:
    """How a sentence says a relation: "X <forward> Y", and "Y <backward> X" where there are words for that."""

    forward: str
    backward: str | None = None
    without_place: str | None = None  # "is sold", where the forward words are "is sold in"


def verb_and_noun(words: str | None) -> tuple[str, str]:
    """What is said of the one behind these words: of "has neighbour" it is a neighbour; empty where nobody knows."""
    found = _WITH_NOUN.fullmatch(words or "")
    return (found[1], found[2]) if found else ("", "")


def relation_words(label: str) -> RelationWords:
    """The words for a relation, from what it is called."""
    words = readable_words(label)
    first, last, rest = words[0].lower(), words[-1].lower(), " ".join(words[1:])
    said, ends_in_preposition = " ".join(words), len(words) > 1 and last in _PREPOSITIONS
    if rest and not ends_in_preposition:
        if first in _PLACES:
            return RelationWords(f"is {said}", f"is {rest} of")
        if first in _OBJECTS:
            return RelationWords(said, f"is {rest} of")
    if first in _AS_SAID or first in _VERBS or not first.isalpha():
        return RelationWords(said, None, _without_place(said))
    if first in _PREPOSITIONS:
        return RelationWords(f"is {said}")
    if ends_in_preposition and any(_is_verb_in_s(word.lower()) for word in words[:-1]):
        return RelationWords(said, None, _without_place(said) if _is_verb_in_s(first) else None)
    if ends_in_preposition and last == "of":
        return RelationWords(f"is {said}", f"has {' '.join(words[:-1])}")
    if ends_in_preposition:
        return RelationWords(f"is {said}", None, _without_place(f"is {said}"))
    if any(word.lower() in _PREPOSITIONS - {"of"} for word in words[1:-1]):
        return RelationWords(f"is {said}")  # located in country
    if len(words) == 1 and (_is_verb_in_s(first) or len(first) > _LONG):
        return RelationWords(said)  # a verb, a noun for several, or words written as one: nobody knows
    return RelationWords(f"has {said}", f"is {said} of")


def readable_words(label: str) -> list[str]:
    """The words of a name: of an address or a path its last part, without underscores."""
    shown = label.strip().rstrip("/#")
    if "." in shown and shown.startswith("/"):
        shown = shown.rpartition(".")[2]  # Freebase: two relations through a node without a name
    if not re.search(r"\s", shown):
        shown = re.split(r"[/#]", shown)[-1] or shown
        shown = re.sub(r"^[A-Za-z][\w-]*:(?=\w)", "", shown)  # a prefix, such as of RDF
    parted = _CAMEL.sub(" ", shown)
    if parted != shown and " " not in shown:  # birthPlace
        parted = " ".join(word.lower() if word.istitle() else word for word in parted.split())
    return [word for word in _TOKEN.split(parted) if word] or [label or "?"]


def type_words(type: str) -> str:
    """A type as a noun in a sentence, without capitals where these only begin its words."""
    words = readable_words(type)
    return " ".join(word.lower() if word.istitle() else word for word in words)


def several(noun: str) -> str:
    """A noun for several: countries, boxes, people."""
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if re.search("[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search("(s|x|z|ch|sh)$", noun) else "s")


def article(noun: str) -> str:
    """A noun for any one."""
    return ("an " if noun[:1].lower() in "aeio" else "a ") + noun


def _without_place(said: str) -> str | None:
    words, _, last = said.rpartition(" ")
    return words if words and last in _PLACES else None


def _is_verb_in_s(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not _NO_VERB_IN_S.search(word)
