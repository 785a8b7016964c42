import gzip
import io
import json
import resource

import polars as pl
import pyoxigraph
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.sources import watched_xml
from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.rdf import RdfSource
from dpmpn.errors import DataError

E = "http://example.org/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"

TURTLE = """
@prefix e: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
e:ada e:born_in e:london ; e:age 36 ; e:motto "ad \\"astra\\""@la ; a e:Person , e:Writer ;
  rdfs:label "Ada"@de , "Ada Lovelace"@en ; rdfs:comment "first\\nprogrammer" .
e:london foaf:name "London" ; skos:prefLabel "Londres"@fr .
e:Person rdfs:label "person" .
e:ada e:knows [ e:knows e:charles ] .
"""


def read(path, content, format, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    source = RdfSource(path, ReadOptions(**options), format)
    return source, facts(source)


def facts(source):
    return [row for batch in source.batches() for row in batch.rows()]


def short(rows):
    return [tuple(name.removeprefix(E) for name in row) for row in rows]


def test_facts_labels_and_types_of_turtle(tmp_path):
    source, rows = read(tmp_path / "a.ttl", TURTLE, "ttl")
    assert sorted(short(rows)) == [
        ("_:anonymous#1", "knows", "charles"),
        ("ada", "born_in", "london"),
        ("ada", RDF + "type", "Person"),
        ("ada", RDF + "type", "Writer"),
        ("ada", "knows", "_:anonymous#1"),
    ]
    assert source.labels().sort("id").rows() == [
        (E + "Person", "person", None, None),
        (E + "ada", "Ada Lovelace", "first programmer", "person | Writer"),
        (E + "london", "London", None, None),
    ]
    assert source.account.skipped == {"name or description, used as label": 6, "literal value": 2}
    assert source.account.read == len(rows) + sum(source.account.skipped.values())
    assert source.position() == ((tmp_path / "a.ttl").stat().st_size,) * 2


def test_literals_are_kept_as_nodes(tmp_path):
    source, rows = read(tmp_path / "a.ttl", TURTLE, "ttl", literals="keep")
    assert ("ada", "age", '"36"^^xsd:integer') in short(rows)
    assert ("ada", "motto", '"ad \\"astra\\""@la') in short(rows)
    assert "literal value" not in source.account.skipped


def test_equal_literals_are_one_node_however_they_are_written(tmp_path):
    lines = [
        '<e:a> <e:p> "x" .',
        '<e:a> <e:p> "x"^^<http://www.w3.org/2001/XMLSchema#string> .',
        '<e:a> <e:p> "\\u0078" .',
        '<e:b> <e:p> "x"@EN .',
        '<e:b> <e:p> "x"@en .',
    ]
    _, rows = read(tmp_path / "a.nt", "\n".join(lines), "nt", literals="keep")
    assert [row[2] for row in rows] == ['"x"'] * 3 + ['"x"@en'] * 2


def test_a_name_in_no_language_or_english_comes_first_else_the_first(tmp_path):
    label = f"<{RDFS}label>"
    lines = [
        f'<e:a> {label} "eins"@de .',
        f'<e:a> {label} "one"@en-GB .',
        f'<e:b> {label} "deux"@fr .',
        f'<e:b> {label} "zwei"@de .',
        '<e:c> <http://schema.org/name> "three" .',
        f'<e:c> {label} "drei"@de .',
        f'<e:d> {label} "  " .',
        '<e:e> <http://xmlns.com/foaf/0.1/name> "foaf" .',
        f'<e:e> {label} "rdfs" .',
        f"<e:f> {label} <e:g> .",
    ]
    source, rows = read(tmp_path / "a.nt", "\n".join(lines), "nt")
    names = dict(source.labels().select("id", "name").rows())
    assert names == {"e:a": "one", "e:b": "deux", "e:c": "three", "e:e": "rdfs"}
    assert rows == [("e:f", RDFS + "label", "e:g")]


@pytest.mark.parametrize("format", ["nt", "nq", "ttl", "trig", "rdfxml", "jsonld"])
def test_every_format_says_the_same(tmp_path, format):
    quads = [q for q in pyoxigraph.parse(TURTLE.encode(), pyoxigraph.RdfFormat.TURTLE)]
    named = {
        "nt": "N_TRIPLES", "nq": "N_QUADS", "ttl": "TURTLE", "trig": "TRIG", "rdfxml": "RDF_XML", "jsonld": "JSON_LD",
    }  # fmt: skip
    output = pyoxigraph.serialize(quads, format=getattr(pyoxigraph.RdfFormat, named[format]))
    source, rows = read(tmp_path / f"a.{format}", output, format, literals="keep")
    expected, expected_rows = read(tmp_path / "b.ttl", TURTLE, "ttl", literals="keep")
    assert sorted(rows) == sorted(expected_rows)
    assert source.labels().sort("id").rows() == expected.labels().sort("id").rows()
    assert source.account.skipped == expected.account.skipped


def test_named_graphs_are_read_over_and_counted(tmp_path):
    lines = [
        "<e:a> <e:p> <e:b> <e:graph> .",
        "<e:a> <e:p> <e:c> .",
        '<e:a> <e:p> "see <e:x>" _:graph .',
        '<e:a> <e:p> "see <e:x>"^^<e:type> .',
        '<e:a> <e:p> "see _:x" .',
        '<e:a> <e:p> "_:x _:y"@en <e:graph> .',
    ]
    source, rows = read(tmp_path / "a.nq", "\n".join(lines), "nq", literals="keep")
    assert [row[2] for row in rows] == [
        "e:b", "e:c", '"see <e:x>"', '"see <e:x>"^^<e:type>', '"see _:x"', '"_:x _:y"@en',
    ]  # fmt: skip
    assert source.in_named_graphs == 3


def test_escapes_and_accents_in_names(tmp_path):
    text = "<http://e/\\u00e9> <http://e/p> <http://e/\\U0001F600> .\n<http://e/é> <http://e/p> _:x ."
    _, rows = read(tmp_path / "a.nt", text, "nt")
    assert rows == [("http://e/é", "http://e/p", "http://e/😀"), ("http://e/é", "http://e/p", "_:x")]


def test_blank_nodes_of_two_files_differ(tmp_path):
    _, first = read(tmp_path / "a.nt", "_:b0 <e:p> _:b1 .", "nt", scope="a.nt")
    _, second = read(tmp_path / "b.nt", "_:b0 <e:p> _:b1 .", "nt", scope="b.nt")
    assert first == [("_:a.nt/b0", "e:p", "_:a.nt/b1")]
    assert second == [("_:b.nt/b0", "e:p", "_:b.nt/b1")]


def test_statements_about_statements_are_left_out(tmp_path):
    text = "<< <e:a> <e:p> <e:b> >> <e:says> <e:c> ."
    source, rows = read(tmp_path / "a.ttl", text, "ttl")
    assert rows == [("_:anonymous#1", "e:says", "e:c")]
    assert source.account.skipped == {"statement about a statement": 1}


def test_relative_names_do_not_depend_on_the_folder(tmp_path):
    _, rows = read(tmp_path / "people.ttl", "<#ada> <p> <b> .", "ttl")
    assert rows == [("file:///people.ttl#ada", "file:///p", "file:///b")]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_files(tmp_path, pack):
    _, rows = read(tmp_path / "a.ttl", pack(TURTLE.encode()), "ttl")
    assert len(rows) == 5


def test_a_byte_order_mark_is_no_name(tmp_path):
    for format in ("nt", "ttl"):
        _, rows = read(tmp_path / "a", b"\xef\xbb\xbf<e:a> <e:p> <e:b> .\n", format)
        assert rows == [("e:a", "e:p", "e:b")]


def test_a_cut_off_archive_is_refused(tmp_path):
    content = gzip.compress(TURTLE.encode() * 10, mtime=0)
    with pytest.raises(DataError, match="cut off"):
        read(tmp_path / "a.ttl.gz", content[:-20], "ttl")


def test_a_wrong_line_is_named(tmp_path):
    text = '<e:a> <e:p> <e:b> .\n<e:a> <e:p> "open .\n<e:c> <e:p> <e:d> .\n'
    with pytest.raises(DataError, match=r"a\.nt, line 2: .* in '<e:a> <e:p> \"open \.'"):
        read(tmp_path / "a.nt", text, "nt")
    with pytest.raises(DataError, match=r"a\.nt, line 2: byte 0xff at position 6 is not UTF-8"):
        read(tmp_path / "a.nt", b"<e:a> <e:p> <e:b> .\n<e:a/\xff> <e:p> <e:b> .\n", "nt")


def test_a_wrong_line_is_skipped(tmp_path):
    text = b'<e:a> <e:p> <e:b> .\n<e:a> <e:p> "open .\n<e:\xff> <e:p> <e:b> .\n# so\n\n<e:c> <e:p> <e:d> .'
    source, rows = read(tmp_path / "a.nt", text, "nt", on_error="skip")
    assert rows == [("e:a", "e:p", "e:b"), ("e:c", "e:p", "e:d")]
    assert source.account.skipped == {"not a statement": 1, "not UTF-8": 1}
    assert source.account.read == 4
    assert "line 2" in source.account.examples["not a statement"]


PIECES = [
    "<e:a>",
    "<",
    ">",
    '"',
    '"x"',
    "_:",
    "_:a",
    ".",
    "@en",
    "^^",
    "<<(",
    ")>>",
    "\\",
    "#",
    "\\u12",
    "'",
    "é",
    "\0",
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from([*PIECES, " "]), min_size=1, max_size=6), min_size=1, max_size=4))
def test_good_lines_survive_any_neighbours(tmp_path_factory, bad):
    lines = []
    for i, pieces in enumerate(bad):
        lines += [f"<e:good{i}> <e:p> <e:b> .", "".join(pieces)]
    path = tmp_path_factory.getbasetemp() / "neighbours.nt"
    source, rows = read(path, "\n".join(lines), "nt", on_error="skip", literals="keep")
    assert [row[0] for row in rows if row[0].startswith("e:good")] == [f"e:good{i}" for i in range(len(bad))]
    assert source.account.read == len(rows) + sum(source.account.skipped.values())


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_other_formats_stop_at_an_error_and_name_the_line(tmp_path, on_error):
    with pytest.raises(DataError, match=r"a\.ttl, line 2: ") as raised:
        read(
            tmp_path / "a.ttl",
            "<e:a> <e:p> <e:b> .\n<e:a> <e:p> .\n<e:a> <e:p> <e:b> .",
            "ttl",
            on_error=on_error,
        )
    assert ("what follows an error in this format cannot be read" in str(raised.value)) == (
        on_error == "skip"
    )
    with pytest.raises(DataError, match=r"a\.jsonld, line 2"):
        read(tmp_path / "a.jsonld", '{"@id": "e:a",\n"e:p": {', "jsonld", on_error=on_error)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["nt", "nq", "ttl", "trig", "rdfxml", "jsonld"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, format):
    try:
        read(tmp_path_factory.getbasetemp() / "any", content, format)
    except DataError as error:
        assert "\n" not in str(error).strip()


LITERAL = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(LITERAL, st.sampled_from([None, "en", "de-at"])), min_size=1, max_size=5))
def test_any_literal_comes_back_as_it_was(tmp_path_factory, literals):
    terms = [pyoxigraph.Literal(text, language=language) for text, language in literals]
    node, predicate = pyoxigraph.NamedNode("e:a"), pyoxigraph.NamedNode("e:p")
    quads = [pyoxigraph.Quad(node, predicate, term) for term in terms]
    content = pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS)
    _, rows = read(tmp_path_factory.getbasetemp() / "literals.nq", content, "nq", literals="keep")
    assert [row[2] for row in rows] == [str(term) for term in terms]
    label = pyoxigraph.NamedNode(RDFS + "label")
    content = pyoxigraph.serialize(
        [pyoxigraph.Quad(node, label, terms[0])], format=pyoxigraph.RdfFormat.N_QUADS
    )
    source, _ = read(tmp_path_factory.getbasetemp() / "label.nq", content, "nq")
    shown = "".join(" " if c < " " or c == "\x7f" else c for c in literals[0][0])
    names = source.labels().get_column("name").to_list()
    assert [name.split() for name in names] == ([shown.split()] if shown.split() else [])


def xml(entities="", value="x", about=E + "a"):
    return (
        f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{entities}]>\n'
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="{E}"><rdf:Description rdf:about="{about}">'
        f'<e:p rdf:resource="{E}b"/><e:v>{value}</e:v></rdf:Description></rdf:RDF>'
    )


def test_entities_of_namespaces_are_unfolded(tmp_path):
    entities = f'<!ENTITY e "{E}"><!ENTITY ea "&e;a">'
    _, rows = read(tmp_path / "a.rdf", xml(entities, about="&ea;"), "rdfxml")
    assert short(rows) == [("a", "p", "b")]


LAUGHS = '<!ENTITY l0 "lol">' + "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    "content",
    [
        xml(LAUGHS, "&l9;"),
        xml(LAUGHS),  # unfolded by the parser though never used
        xml("", "x").replace("<rdf:Desc", f"<!DOCTYPE x [{LAUGHS}]><rdf:Desc"),
        xml(f'<!ENTITY a "{"a" * 60000}">', "&a;" * 100_000),
        xml(f'<!ENTITY a "{"a" * 100_000}">', "&a;"),
    ],
    ids=["nested", "unused", "second doctype", "quadratic", "large"],
)
def test_entity_bombs_are_refused_before_they_unfold(tmp_path, content):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError):
        read(tmp_path / "a.rdf", content, "rdfxml")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


@given(st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_bombs_are_seen_however_they_are_cut(chunk):
    content = xml(LAUGHS.replace("lol", "l" * 3000), "&l9;").encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watched_xml, "_CHUNK", chunk)
        watched = watched_xml.WatchedXml(io.BytesIO(content), "bomb")
        with pytest.raises(DataError, match="unfolds to far more"):
            while watched.read(1000):
                pass


def test_external_entities_are_not_loaded(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("http://secret/")
    for kind in ("", "% "):
        entities = f'<!ENTITY {kind}x SYSTEM "{secret.as_uri()}">'
        with pytest.raises(DataError) as raised:
            read(tmp_path / "a.rdf", xml(entities, "&x;"), "rdfxml", literals="keep")
        assert "http://secret/" not in str(raised.value)


def test_cut_off_and_deep_xml_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.rdf, line 3: not well-formed"):
        read(tmp_path / "a.rdf", xml()[:-70], "rdfxml")
    deep = xml().split("<rdf:Desc")[0] + "<e:a><e:b>" * 5000
    with pytest.raises(DataError, match="nested more than 1000 deep"):
        read(tmp_path / "a.rdf", deep, "rdfxml")


@pytest.mark.parametrize(
    "context", ["http://127.0.0.1:9/context", {"@import": "http://127.0.0.1:9/context", "@version": 1.1}]
)
def test_contexts_elsewhere_are_not_loaded(tmp_path, context, monkeypatch):
    document = {"@context": context, "@id": "e:a", "e:p": {"@id": "e:b"}}
    with pytest.raises(DataError, match=r"a\.jsonld: .*context"):
        read(tmp_path / "a.jsonld", json.dumps(document), "jsonld")


def test_batches_are_of_bounded_size(tmp_path):
    text = "".join(f"<e:{i}> <e:p> <e:{i + 1}> .\n" for i in range(160_000))
    for format in ("nt", "ttl"):
        (tmp_path / "a").write_text(text)
        source = RdfSource(tmp_path / "a", ReadOptions(), format)
        batches = list(source.batches())
        assert sum(batch.height for batch in batches) == 160_000
        assert all(batch.schema == pl.Schema(dict.fromkeys(batch.columns, pl.String)) for batch in batches)
    assert len(batches) == 2


def test_there_is_no_time_in_rdf(tmp_path):
    with pytest.raises(DataError, match="no time column 'year'"):
        read(tmp_path / "a.nt", "", "nt", time_column="year")


def test_what_the_parser_says_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"line \d: Invalid IRI code point '\\n'; correct the file$"):
        read(tmp_path / "a.trig", b"<u:g> {\n<u:a> <u:b> <u:c.\n<u:d> <u:b> <u:e> .\n}\n", "trig")
