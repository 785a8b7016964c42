"""Where a model enters an operation."""

import numpy as np
import pytest
import torch

from dpmpn.ops.attention import edge_logits, flow_attention
from dpmpn.ops.entry import check_shapes
from dpmpn.ops.layers import SparseRows, scored, sparse_product, updated
from dpmpn.ops.messages import combine_leaky, pass_messages
from dpmpn.ops.pool import RowPool


def ints(n: int) -> np.ndarray:
    return np.zeros(n, np.int64)


def test_dimensions_of_one_name_have_one_size() -> None:
    rows, offsets = torch.zeros(3, 2), ints(4)
    check_shapes(
        "op", rows=(rows, "pairs width"), offsets=(offsets, "pairs+1"), more=(rows, "_ 2"), none=(None, "x")
    )
    with pytest.raises(ValueError, match=r"^op: b is 4, not pairs; a is pairs x width = 3 x 2$"):
        check_shapes("op", a=(rows, "pairs width"), c=(rows, "_ _"), b=(offsets, "pairs"))
    with pytest.raises(ValueError, match=r"^op: a is 3 x 2, not pairs$"):
        check_shapes("op", a=(rows, "pairs"))
    with pytest.raises(ValueError, match=r"^op: a is 3 x 2, not pairs x 5$"):
        check_shapes("op", a=(rows, "pairs 5"))
    with pytest.raises(ValueError, match=r"^op: b is 4, not pairs\+1; a is pairs = 4$"):
        check_shapes("op", a=(offsets, "pairs"), b=(offsets, "pairs+1"))


def test_each_operation_names_the_argument_that_does_not_fit() -> None:
    two, three = torch.zeros(4, 2), torch.zeros(4, 3)
    pool = RowPool(2, torch.float32)
    with pytest.raises(ValueError, match=r"^updated: change is 4 x 3, not received x width; received is"):
        updated(two, three, three, ints(4), three[0], three[0])
    with pytest.raises(
        ValueError, match=r"^scored: of_query is 5, not nodes; node is nodes x hidden = 4 x 2$"
    ):
        scored(two, two, ints(5), two)
    with pytest.raises(ValueError, match=r"^scored: of_profile is 0, not nodes"):
        scored(two, two, ints(4), two, two)
    with pytest.raises(ValueError, match=r"^sparse_product: x is 4 x 2, not 7 x width$"):
        sparse_product(SparseRows(ints(3), ints(0), np.empty(0), 7), two)
    with pytest.raises(
        ValueError, match=r"^combine_leaky: d is 1024 x 2, not _ x width; a is _ x width = 4 x 3"
    ):
        combine_leaky(three, ints(5), three, ints(5), three, ints(5), pool, ints(5))
    with pytest.raises(ValueError, match=r"^combine_leaky: scale is 4, not rows"):
        combine_leaky(two, ints(5), two, ints(5), two, ints(5), pool, ints(5), two[:, 0])
    with pytest.raises(
        ValueError, match=r"^pass_messages: index\[1\] is 6, not edges; receiver is edges = 5"
    ):
        pass_messages(
            (two, two, two), (ints(5), ints(6), ints(5)), torch.zeros(2, 2), torch.zeros(2), ints(5), 1
        )
    with pytest.raises(
        ValueError, match=r"^flow_attention: edge_offsets is 4, not senders\+1; attention is senders = 4"
    ):
        flow_attention(torch.zeros(5), torch.zeros(4), ints(4), ints(4), ints(5), ints(2), "edge")
    with pytest.raises(ValueError, match=r"^edge_logits: visited is 4 x 3, not states x 2$"):
        four = torch.zeros(4, 4)
        edge_logits(
            four, four[0], four, four, three, pool, ints(5), ints(4), ints(4), ints(9), ints(3), ints(3)
        )
    with pytest.raises(
        ValueError, match=r"^RowPool.append: rows is 4 x 3, not rows x width; pool is _ x width"
    ):
        pool.append(three)
    with pytest.raises(ValueError, match=r"^RowPool.append_updated: bias is 3, not width"):
        pool.append_updated(two, two, torch.zeros(2, 2), three[0])
