"""What the server gives the page: pictures of explanations, and questions to begin with."""

import re

from serving import QUESTION, Server

from dpmpn.serve.status import example_questions


def picture(server: Server, **more: object) -> dict:
    return server.client.post("/api/v1/picture", json={**QUESTION, **more}).json()


def test_the_full_picture_is_drawn_only_where_it_is_wanted(server: Server) -> None:
    small, big = picture(server), picture(server, full=True)
    assert set(small["data"]["views"]) == set(small["names"]) == {"pruned"}
    assert set(big["data"]["views"]) == set(big["names"]) == {"pruned", "full"}
    assert small["data"]["views"]["pruned"] == big["data"]["views"]["pruned"]
    assert small["html"].count("<figure") == 1 and big["html"].count("<figure") == 2
    assert len(small["names"]["pruned"]) == len(small["data"]["views"]["pruned"]["nodes"])


def test_a_picture_is_that_of_the_explanation(server: Server) -> None:
    explanation = server.client.post("/api/v1/explain", json={**QUESTION, "answer": "father7"}).json()[
        "explanation"
    ]
    drawn = picture(server, answer="father7")
    assert drawn["answer"] == {"name": "father7", "label": "father7"}
    assert drawn["names"]["pruned"] == [node["name"] for node in explanation["pruned"]["nodes"]]
    assert drawn["data"]["steps"] == explanation["steps"] == len(drawn["data"]["told"]) - 1


def test_names_are_escaped_and_nothing_in_a_picture_can_run(server: Server) -> None:
    asked = {"head": "<i>Zoë</i>", "relation": "mother", "inverse": True}
    drawn = picture(server, **asked, full=True)
    assert "<i>Zoë" not in drawn["html"] and "&lt;i&gt;Zoë" in drawn["html"]
    assert not re.search(r"<(script|style|img|iframe|object|link)|\s(on\w+|style|src)=", drawn["html"])
    assert "<i>Zoë</i>" in drawn["names"]["full"]


def test_what_is_not_reached_has_no_picture(server: Server) -> None:
    got = server.client.post("/api/v1/picture", json={**QUESTION, "answer": "<i>Zoë</i>"})
    assert (got.status_code, got.json()["error"]["code"]) == (404, "not_reached")


def test_questions_to_begin_with_are_those_of_held_out_facts(server: Server) -> None:
    examples = server.client.get("/api/v1/model").json()["examples"]
    assert [(each["head"], each["relation"], each["inverse"]) for each in examples] == [
        ("child7", "father", False)
    ]
    answer = server.ask(examples[0]["head"], examples[0]["relation"], top=50).json()["answers"]
    assert any(each["held_out"] for each in answer)


def test_examples_are_of_many_relations_and_each_once(server: Server) -> None:
    class WithoutTest:
        """The same, with nothing held out."""

        graph = server.reasoner.graph

        class dataset:
            @staticmethod
            def split(name: str):  # type: ignore[no-untyped-def]
                facts = server.reasoner.dataset.split("train")
                return facts if name == "train" else facts[:0]

    found = example_questions(WithoutTest(), 6)  # type: ignore[arg-type]
    assert {each.relation for each in found[:3]} == {"mother", "husband", "father"}
    assert len({(each.head, each.relation) for each in found}) == 6
