"""The closed loop of users and engine: schedules worked by hand, and what must hold of every one.

By hand: a step takes 1 s, a pass over prompts 10 s, both together 11 s; each prompt fills a pass.
"""

from __future__ import annotations

import pytest

from memwall.reports.serve_engines import ENGINES, Serving
from memwall.reports.serve_loop import Demand, Loop, Outcome, Rules


class ByHand:
    def step_s(self, running: int, context: float) -> float:
        return 1.0

    def read_s(self, tokens: int) -> float:
        return 10.0

    def mixed_s(self, running: int, context: float, tokens: int) -> float:
        return 11.0


class Sized:
    """Every part grows with what it does."""

    def step_s(self, running: int, context: float) -> float:
        return 0.01 + 0.0001 * running + 0.0000001 * running * context

    def read_s(self, tokens: int) -> float:
        return 0.005 + 0.00002 * tokens

    def mixed_s(self, running: int, context: float, tokens: int) -> float:
        return self.read_s(tokens) + self.step_s(running, context)


def played(users: int, osl: int, rounds: int = 1, slots: int = 9, **rules: object) -> Outcome:
    return Loop(ByHand(), Demand(users, 100, osl, rounds), Rules(slots, 100, **rules)).run()  # type: ignore[arg-type]


def test_two_users_whose_prompts_are_read_in_the_steps() -> None:
    """0-10 A's prompt; 10-21 B's with A's second token; 21-22 both, A ends; 22-23 B ends."""
    seen = played(2, 3)
    assert seen.ttft_s == [10, 21]
    assert seen.request_s == [22, 23]
    assert seen.tpot_s == [(22 - 10) / 2, (23 - 21) / 2]
    assert seen.end_s == 23


def test_two_users_whose_prompts_are_read_first() -> None:
    """0-10 A's prompt; 10-20 B's while A rests; 20-22 two steps of both."""
    seen = played(2, 3, prefill_first=True)
    assert seen.ttft_s == [10, 20]
    assert seen.request_s == [22, 22]
    assert seen.tpot_s == [(22 - 10) / 2, (22 - 20) / 2]


def test_who_finds_no_place_waits_for_one_to_end() -> None:
    """0-12 A; 12-24 B."""
    seen = played(2, 3, slots=1)
    assert seen.ttft_s == [10, 22]
    assert seen.queue_s == [0, 12]
    assert seen.tpot_s == [1, 1]


def test_a_step_that_is_scheduled_already_has_no_prompt_in_it() -> None:
    """0-10 A; 10-21 B with A; 21-23 two steps, A ends and asks again. At once: 23-34 A with B's last token.

    A step ahead: 23-24 B's last token alone, both have asked, 24-34 A, 34-45 B with A.
    """
    at_once, ahead = (played(2, 4, rounds=2, ahead=steps) for steps in (0, 1))
    assert at_once.ttft_s[:3] == ahead.ttft_s[:3] == [10, 21, 11]
    assert at_once.tpot_s[:2] == [(23 - 10) / 3, (34 - 21) / 3]
    assert ahead.tpot_s[:2] == [(23 - 10) / 3, (24 - 21) / 3]
    assert ahead.ttft_s[3] == 45 - 24


def test_an_engine_that_looks_seldom_sees_a_request_late() -> None:
    """0-10 A; 10-21 B with A; 21-31 ten steps, A ends and asks again; B's last token is one step away.

    Looks are after steps 5, 10, 15 from 10 s on, and step 11 ends at 31 s: B makes its last token alone, and
    an idle engine looks at once.
    """
    often, seldom = (played(2, 12, rounds=2, poll=poll) for poll in (1, 5))
    assert often.ttft_s[2] == 42 - 31
    assert often.tpot_s[1] == (42 - 21) / 11
    assert seldom.ttft_s[2] == 42 - 31
    assert seldom.tpot_s[1] == (32 - 21) / 11
    assert seldom.ttft_s[3] == 53 - 32


def test_the_first_is_held_until_others_have_come() -> None:
    """Of three users A's second prompt, held for 2 steps, waits for B's and C's last tokens."""
    seen = played(3, 5, rounds=2, hold=2)
    alone = played(3, 5, rounds=2)
    assert seen.ttft_s[3] > alone.ttft_s[3]
    assert seen.tpot_s[2] < alone.tpot_s[2]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("spread", [1, 0.8])
@pytest.mark.parametrize("slots", [3, 40])
def test_every_token_and_request_is_counted(engine: str, spread: float, slots: int) -> None:
    demand = Demand(users=40, isl=1500, osl=70, rounds=5, spread=spread)
    loop = Loop(Sized(), demand, Serving(ENGINES[engine], poll=3, hold=2).rules(slots, 1500))
    lengths = [loop._lengths(number) for number in range(200)]
    seen = loop.run()
    assert len(seen.ttft_s) == len(seen.tpot_s) == len(seen.request_s) == len(seen.queue_s) == 200
    assert seen.read_tokens == sum(isl for isl, _ in lengths)
    assert seen.made_tokens == sum(osl for _, osl in lengths)
    assert all(spread * 1500 - 1 <= isl <= 1500 and spread * 70 - 1 <= osl <= 70 for isl, osl in lengths)
    assert min(seen.ttft_s) >= ENGINES[engine].start_s
    assert seen.end_s >= max(seen.request_s)
    assert loop.contexts == 0
    assert not loop.active


@pytest.mark.parametrize("engine", ENGINES)
def test_one_user_never_waits(engine: str) -> None:
    rules = Serving(ENGINES[engine]).rules(1, 1500)
    seen = Loop(Sized(), Demand(1, 1500, 70, 10), rules).run()
    assert seen.ttft_s == pytest.approx([rules.start_s + Sized().read_s(1500)] * 10)
    assert seen.tpot_s == pytest.approx([Sized().step_s(1, 1500 + 69 / 2)] * 10)


@pytest.mark.parametrize("engine", ENGINES)
def test_more_users_and_fewer_places_never_shorten_the_wait(engine: str) -> None:
    def wait(users: int, slots: int) -> float:
        rules = Serving(ENGINES[engine]).rules(slots, 1500)
        seen = Loop(Sized(), Demand(users, 1500, 70, 1), rules).run()
        return sum(seen.ttft_s) / users

    waits = [wait(users, 1000) for users in (1, 2, 4, 8, 16, 32, 64)]
    assert waits == sorted(waits)
    places = [wait(64, slots) for slots in (64, 32, 16, 8, 4, 2, 1)]
    assert places == sorted(places)


def test_a_single_token_has_no_time_between_two() -> None:
    seen = played(2, 1)
    assert seen.tpot_s == []
    assert seen.request_s == seen.ttft_s == [10, 20]
    assert seen.made_tokens == 2
