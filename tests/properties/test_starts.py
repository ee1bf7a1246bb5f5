"""What started behind a claim is found by levels as it would be by comparing each start."""

from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine.holds.starts import Start, Starts
from aliquot.engine.queue.claim_queue import Position, precedes

_ROWS, _ACCOUNTS = 2, 3


@st.composite
def _positions(draw: st.DrawFn) -> Position:
    """Groups on up to three levels, some alike, with turns that change; then importance."""
    path = [
        (draw(st.sampled_from("abc")), (draw(st.integers(0, 2)),))
        for _ in range(draw(st.integers(0, 3)))
    ]
    number = draw(st.integers(0, 4))
    return tuple(path), (-draw(st.integers(0, 1)), number, (str(number), str(number)))


@st.composite
def _starts(draw: st.DrawFn) -> Start:
    rows, accounts = st.sampled_from(range(_ROWS)), st.sampled_from(range(_ACCOUNTS))
    return Start(
        draw(_positions()),
        draw(st.frozensets(rows)),
        draw(st.frozensets(rows)),
        tuple(draw(st.lists(accounts, unique=True))),
    )


@given(st.lists(_starts(), max_size=12), st.lists(_positions(), min_size=1, max_size=4))
def test_starts_behind_a_position_are_those_that_it_precedes(
    found: list[Start], positions: list[Position]
) -> None:
    starts = Starts(found)
    for position in positions:
        behind = [each for each in found if precedes(position, each.position)]
        assert _same(starts.behind_in_room(position, None), behind)
        for row in range(_ROWS):
            in_room = [each for each in behind if row in each.room]
            assert _same(starts.behind_in_room(position, row), in_room)
            for account in range(_ACCOUNTS):
                there = [each for each in behind if row in each.charge and account in each.path]
                assert _same(starts.behind_in_right(position, row, account), there)


def _same(some: object, others: list[Start]) -> bool:
    """The same starts, in any order, each once."""
    return sorted(map(id, some)) == sorted(map(id, others))  # type: ignore[call-overload]
