"""What the HTTP API answers: over a real connection, as another program would ask."""

import csv
import io
from pathlib import Path

import httpx
import jsonschema
import pytest
from serving import QUESTION, Server, serving

from dpmpn.ask.new_answers import MEASURED
from dpmpn.render.export import schema
from dpmpn.serve.problems import CODES
from dpmpn.train.run_folder import run_path


def test_an_answer_is_what_the_reasoner_says(server: Server) -> None:
    answer = server.ask("child7", top=3).json()
    expected = server.reasoner.predict("child7", "father", 3)
    assert [each["name"] for each in answer["answers"]] == [each.answer for each in expected]
    assert [each["score"] for each in answer["answers"]] == pytest.approx(
        [each.score for each in expected], rel=1e-5
    )
    assert answer["question"] == {
        **{"head": "child7", "relation": "father", "inverse": False},
        **{"head_label": "child7", "relation_label": "father"},
    }
    assert answer["milliseconds"] > 0


def test_known_and_held_out_answers_are_marked_and_can_be_left_out(server: Server) -> None:
    by_name = {each["name"]: each for each in server.ask("child7", top=50).json()["answers"]}
    assert by_name["father7"]["held_out"] == "test" and not by_name["father7"]["known"]
    known = {each["name"]: each for each in server.ask("child1", top=50).json()["answers"]}
    assert known["father1"]["known"]
    for head, left_out in (("child1", "father1"), ("child7", "father7")):
        new = server.ask(head, top=50, new=True, any_role=True).json()["answers"]
        assert left_out not in {each["name"] for each in new} and new[0]["rank"] == 1
        # No other father is reached from there.
        assert server.ask(head, top=50, new=True).json()["answers"] == []


def test_answers_that_do_not_fit_are_left_out_unless_they_are_asked_for(server: Server) -> None:
    fitting, every = (server.ask("child7", any_role=any_role).json() for any_role in (False, True))
    assert server.ask("child7").json()["answers"] == fitting["answers"]
    assert [each["name"] for each in fitting["answers"]] == ["father7"]
    others = {each["name"] for each in every["answers"]} - {"father7"}
    assert "mother7" in others
    (note,) = fitting["notes"]
    assert "not shown" in note and "mother7" in note and not every["notes"]
    many = {"questions": [QUESTION], "any_role": True}
    (result,) = server.client.post("/api/v1/ask-many", json=many).json()["results"]
    assert result["answers"] == every["answers"]


def test_answers_come_with_what_was_measured_of_them(server: Server) -> None:
    (answer,) = server.ask("child7").json()["answers"]
    assert answer["score"] > 0
    assert {answer[name] for name in MEASURED} == {None}  # so few facts measure nothing
    with serving(run_path("demo")) as demo:
        question = "Serbia", "in_subregion"
        answers, expected = (
            demo.ask(*question, top=5).json()["answers"],
            demo.reasoner.predict(*question, top=5),
        )
        for name in MEASURED:
            assert [each[name] for each in answers] == pytest.approx(
                [getattr(each, name) for each in expected], rel=1e-5
            )
            assert answers[0][name] is not None
        answers = demo.ask("France", "neighbour_of", top=30).json()["answers"]
        known = [each for each in answers if each["known"]]
        assert known and {each[name] for each in known for name in MEASURED} == {None}


def test_the_other_direction(server: Server) -> None:
    answer = server.ask("father7", inverse=True).json()
    expected = server.reasoner.predict("father7", "father", inverse=True)
    assert [each["name"] for each in answer["answers"]] == [each.answer for each in expected]
    assert answer["question"]["inverse"]


def test_many_questions_have_results_in_their_order(server: Server) -> None:
    asked = [QUESTION, {"head": "chidl7", "relation": "father"}, {**QUESTION, "head": "child6"}]
    results = server.client.post("/api/v1/ask-many", json={"questions": asked, "top": 2}).json()["results"]
    assert [result["question"]["head"] for result in results] == ["child7", "chidl7", "child6"]
    assert results[1]["error"]["code"] == "unknown_entity" and "child7" in results[1]["error"]["near"]
    alone = server.ask("child6", top=2).json()
    assert results[2]["answers"] == alone["answers"]


def test_entities_are_found_and_described(server: Server) -> None:
    found = server.client.get("/api/v1/entities", params={"q": "CHILD7"}).json()
    assert found == [{"name": "child7", "label": "child7", "description": None, "facts": 1, "match": "exact"}]
    assert len(server.client.get("/api/v1/entities", params={"q": "child", "limit": 5}).json()) == 5
    entity = server.client.get("/api/v1/entity", params={"name": "mother1", "limit": 1, "offset": 1}).json()
    assert entity["total"] == 2 and entity["types"] == []
    assert entity["facts"] == [
        {
            "head": {"name": "child1", "label": "child1"},
            "relation": {"name": "mother", "label": "mother"},
            "tail": {"name": "mother1", "label": "mother1"},
        }
    ]


def test_names_may_hold_anything(server: Server) -> None:
    entity = server.client.get("/api/v1/entity", params={"name": "a/b c"}).json()
    assert entity["facts"][0]["tail"]["name"] == "<i>Zoë</i>"
    assert server.ask("<i>Zoë</i>", "mother", inverse=True).json()["answers"][0]["name"]


def test_relations_come_with_those_of_the_head_first(server: Server) -> None:
    offered = server.client.get("/api/v1/relations", params={"head": "child7"}).json()
    assert offered[0] == {
        "name": "mother",
        "label": "mother",
        "inverse": False,
        "used": "head",
        "count": 1,
    }
    assert len(server.client.get("/api/v1/relations").json()) == len(offered) == 6


def test_the_model_card_tells_what_is_served_and_no_path(server: Server, run_dir: Path) -> None:
    card = server.client.get("/api/v1/model")
    assert card.json()["dataset"]["name"] == "family" and card.json()["dataset"]["test"] == 1
    assert card.json()["configuration"]["model"]["n_dims"] == 6
    assert card.json()["limits"]["questions"] == 256
    assert card.json()["versions"]["trained_with"]["dpmpn"]
    assert str(run_dir.parent) not in card.text


def test_an_explanation_follows_the_published_format(server: Server) -> None:
    body = server.client.post("/api/v1/explain", json=QUESTION).json()
    jsonschema.validate(body["explanation"], schema())
    first = server.ask("child7").json()["answers"][0]
    assert body["explanation"]["answer"]["answer"] == first["name"]
    assert first["name"] in body["text"]
    second = server.ask("child7", any_role=True).json()["answers"][1]["name"]
    named = server.client.post("/api/v1/explain", json={**QUESTION, "answer": second}).json()
    assert named["explanation"]["answer"]["answer"] == second


def test_deciding_facts_and_what_becomes_without_them(server: Server) -> None:
    first = server.ask("child7").json()["answers"][0]["name"]
    found = server.client.post("/api/v1/decisive", json={**QUESTION, "answer": first}).json()
    explanation = server.client.post("/api/v1/explain", json={**QUESTION, "answer": first}).json()[
        "explanation"
    ]
    text = found.pop("text")
    jsonschema.validate({**explanation, **found}, schema())
    assert text.startswith(("What decides", "The prior "))
    fact = {"head": "mother7", "relation": "husband", "tail": "father7"}
    asked = {**QUESTION, "answer": first, "remove": [fact]}
    changed = server.client.post("/api/v1/what-if", json=asked).json()
    assert changed["before"]["name"] == first and changed["text"]
    same = server.client.post("/api/v1/what-if", json={**asked, "remove": []}).json()
    assert same["before"] == same["after"]
    unknown = {**asked, "remove": [{**fact, "tail": "nobody"}]}
    refused = server.client.post("/api/v1/what-if", json=unknown)
    assert refused.status_code == 404 and refused.json()["error"]["code"] == "unknown_entity"


def test_why_not_says_where_attention_was_lost(server: Server) -> None:
    body = server.client.post("/api/v1/why-not", json={**QUESTION, "candidate": "<i>Zoë</i>"}).json()
    jsonschema.validate(body["why_not"], {**schema()["$defs"]["why_not"], "$defs": schema()["$defs"]})
    assert body["why_not"]["reason"] == "unreachable" and body["text"] == body["why_not"]["text"]


def test_a_click_on_an_answer_does_not_ask_again(server: Server) -> None:
    server.ask("child5")
    asked = server.metric("dpmpn_batch_questions_count")
    server.client.post("/api/v1/explain", json={**QUESTION, "head": "child5"})
    server.client.post("/api/v1/why-not", json={**QUESTION, "head": "child5", "candidate": "father1"})
    assert server.metric("dpmpn_batch_questions_count") == asked


@pytest.mark.parametrize(
    ("kind", "media_type", "begins"),
    [
        ("svg", "image/svg+xml", b"<"),
        ("png", "image/png", b"\x89PNG"),
        ("json", "application/json", b"{"),
        ("csv", "text/csv", b"pattern,"),
        ("html", "text/html", b"<!"),
        ("txt", "text/plain", b""),
        ("dot", "text/vnd.graphviz", b"digraph explanation {"),
    ],
)
def test_explanations_can_be_downloaded(server: Server, kind: str, media_type: str, begins: bytes) -> None:
    got = server.client.get(f"/api/v1/explanation.{kind}", params=QUESTION)
    assert got.status_code == 200 and got.headers["content-type"].startswith(media_type)
    assert got.content.startswith(begins) and len(got.content) > 20
    assert got.headers["content-disposition"].startswith('attachment; filename="child7-father-')
    if kind == "csv":
        assert next(csv.DictReader(io.StringIO(got.text))).keys() >= {
            "sentence",
            "share",
            "support",
            "confidence",
        }


def test_the_file_name_of_a_download_is_harmless(server: Server) -> None:
    asked = {"head": "<i>Zoë</i>", "relation": "mother", "inverse": "true"}
    name = server.client.get("/api/v1/explanation.txt", params=asked).headers["content-disposition"]
    assert name == 'attachment; filename="i-Zo-i-mother-a-b-c.txt"'


ASK, GET = ("POST", "/api/v1/ask"), ("GET", "/api/v1/entity")


@pytest.mark.parametrize(
    ("call", "given", "status", "code"),
    [
        (ASK, {"json": {**QUESTION, "head": "chidl7"}}, 404, "unknown_entity"),
        (ASK, {"json": {**QUESTION, "relation": "fahter"}}, 404, "unknown_relation"),
        (ASK, {"json": {**QUESTION, "top": 0}}, 422, "invalid_request"),
        (ASK, {"json": {**QUESTION, "top": 1001}}, 422, "invalid_request"),
        (ASK, {"json": {**QUESTION, "top": "5"}}, 422, "invalid_request"),
        (ASK, {"json": {**QUESTION, "inverse": 1}}, 422, "invalid_request"),
        (ASK, {"json": {**QUESTION, "topp": 1}}, 422, "invalid_request"),
        (ASK, {"json": {**QUESTION, "head": "x" * 5000}}, 422, "invalid_request"),
        (ASK, {"json": {**QUESTION, "head": "nul\x00l"}}, 404, "unknown_entity"),
        (ASK, {"json": [QUESTION]}, 422, "invalid_request"),
        (ASK, {"json": QUESTION, "headers": {"content-type": "text/plain"}}, 422, "invalid_request"),
        (ASK, {"content": b"{"}, 422, "invalid_request"),
        (ASK, {"content": b'{"head": "\\ud800", "relation": "father"}'}, 422, "invalid_request"),
        (ASK, {"content": b'{"head": "child7", "relation": "father", "top": NaN}'}, 422, "invalid_request"),
        (ASK, {"content": b'{"head": "child7", "relation": "father", "top": 1e999}'}, 422, "invalid_request"),
        (ASK, {"content": b'{"top": ' + b"9" * 5000 + b"}"}, 422, "invalid_request"),
        (ASK, {"content": b"[" * 100_000}, 422, "invalid_request"),
        (ASK, {"content": b"\xff\xfe"}, 422, "invalid_request"),
        (ASK, {"content": b""}, 422, "invalid_request"),
        (("POST", "/api/v1/ask-many"), {"json": {"questions": []}}, 422, "invalid_request"),
        (("POST", "/api/v1/ask-many"), {"json": {"questions": [QUESTION] * 257}}, 422, "invalid_request"),
        (("POST", "/api/v1/explain"), {"json": {**QUESTION, "answer": "<i>Zoë</i>"}}, 404, "not_reached"),
        (("POST", "/api/v1/explain"), {"json": {**QUESTION, "answer": "nobody"}}, 404, "unknown_entity"),
        (("POST", "/api/v1/why-not"), {"json": QUESTION}, 422, "invalid_request"),
        (GET, {"params": {"name": "nobody"}}, 404, "unknown_entity"),
        (GET, {"params": {"name": "child7", "limit": "1e3"}}, 422, "invalid_request"),
        (GET, {"params": {"name": "child7", "limit": 100_000}}, 422, "invalid_request"),
        (GET, {"params": {"name": "child7", "file": "/etc/passwd"}}, 422, "invalid_request"),
        (("GET", "/api/v1/ask"), {}, 405, "method_not_allowed"),
        (("DELETE", "/"), {}, 405, "method_not_allowed"),
        (("GET", "/api/v1/nothing"), {}, 404, "not_found"),
        (("GET", "/api/v1/model/"), {}, 404, "not_found"),
    ],
)
def test_mistakes_have_one_shape(
    server: Server, call: tuple[str, str], given: dict, status: int, code: str
) -> None:
    if "content" in given:
        given = {**given, "headers": {"content-type": "application/json"}}
    got = server.client.request(*call, **given)
    assert (got.status_code, got.json()["error"]["code"]) == (status, code), got.text
    assert set(got.json()) == {"error"} and set(got.json()["error"]) == {"code", "message", "near"}
    assert code in CODES and len(got.json()["error"]["message"]) < 400


@pytest.mark.parametrize(
    "given", [{"content": b'{"head": "child7"}'}, {"content": b""}, {"json": [QUESTION]}, {"data": QUESTION}]
)
def test_a_body_that_is_no_json_object_is_told_what_to_send(server: Server, given: dict) -> None:
    message = server.client.post("/api/v1/ask", **given).json()["error"]["message"]
    assert message == "send a JSON object with Content-Type: application/json"


def test_a_mistake_inside_is_no_secret_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(server.reasoner, "ask", fail)
    got = server.ask("child4")
    assert got.status_code == 500 and got.json()["error"]["code"] == "internal" and "secret" not in got.text
    assert got.headers["x-content-type-options"] == "nosniff"
    monkeypatch.undo()
    assert server.ask("child4").status_code == 200


def test_the_description_loads_nothing_and_lists_all_routes(server: Server) -> None:
    described = server.client.get("/api/openapi.json").json()
    assert {"/api/v1/ask", "/api/v1/explanation.svg", "/livez", "/metrics"} <= set(described["paths"])
    for path in described["paths"].values():
        for operation in path.values():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    assert answer["content"]["application/json"]["examples"], operation
    assert httpx.get(f"{server.url}/docs").status_code == 404


def test_metrics_count_requests_by_route_and_status(server: Server) -> None:
    for _ in range(3):
        server.client.get("/made/up/path")
    text = server.client.get("/metrics").text
    assert 'dpmpn_requests_total{route="other",status="404"}' in text
    assert "made" not in text
    assert "dpmpn_request_seconds_bucket" in text and "dpmpn_batch_questions_bucket" in text


def test_what_the_model_has_learnt_about_a_relation(server: Server) -> None:
    reply = server.client.post("/api/v1/patterns", json={"relation": "father", "top": 2})
    assert reply.status_code == 200
    learnt = reply.json()["learnt"]
    assert (learnt["relation"], learnt["inverse"]) == ("father", False)
    assert 0 < len(learnt["patterns"]) <= 2 and learnt["reached"] <= learnt["questions"]
    assert learnt["patterns"][0]["sentence"] in reply.json()["text"]
    back = server.client.post("/api/v1/patterns", json={"relation": "father", "inverse": True})
    assert back.json()["learnt"]["inverse"]
    wrong = server.client.post("/api/v1/patterns", json={"relation": "fathr"})
    assert wrong.status_code == 404 and wrong.json()["error"]["code"] == "unknown_relation"


def test_an_explanation_begins_with_its_patterns(server: Server) -> None:
    reply = server.client.post("/api/v1/explain", json=QUESTION).json()
    patterns = reply["explanation"]["patterns"]
    assert patterns[0]["sentence"] in reply["text"]
    assert all(
        {"relations", "share", "instances", "support", "confidence"} <= each.keys() for each in patterns
    )
