from hand_made import diamond, node

from dpmpn.render.shapes import EARLY, LATE, LITTLE, gained, node_colour, strengths


def test_grey_is_little_yellow_early_and_red_late():
    assert node_colour(0.0, 0.7) == LITTLE
    assert node_colour(1.0, 0.0) == EARLY
    assert node_colour(1.0, 1.0) == LATE
    assert node_colour(1.0, 0.5) not in (EARLY, LATE)


def test_attention_is_gained_when_it_rises():
    assert gained(node("a", (0.0, 0.5, 0.5, 0.2))) == (0.5, 0.0)
    assert gained(node("a", (0.0, 0.0, 0.0, 0.2))) == (0.2, 1.0)
    assert gained(node("a", (0.0, 0.1, 0.1, 0.2))) == (0.2, 0.5)
    assert gained(node("a", (0.0, 0.0, 0.0, 0.0))) == (0.0, 0.0)


def test_strength_is_that_beside_the_strongest_but_for_the_ends():
    strength = strengths(diamond().pruned, (0, 3))
    assert strength[1] == 1.0
    assert abs(strength[2] - (0.3 / 0.5) ** 0.5) < 1e-9
