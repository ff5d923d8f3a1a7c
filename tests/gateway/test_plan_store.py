"""Plans in memory and in what workers share."""

from __future__ import annotations

from rolling_chat.context import ContextConfig, build_final_prompt
from rolling_chat.gateway.fingerprints import Branch, Recognizer
from rolling_chat.gateway.plan_store import PlanStore
from rolling_chat.gateway.transcripts import Said, Transcript
from tests.support.conversations import assistant, tool, user
from tests.support.gateway import SharedMemory


def branch(turns: int, first: str = "Hi.") -> Branch:
    messages = [user(first)]
    for number in range(turns):
        messages += [assistant(f"Answer {number}."), user(f"Question {number}.")]
    return Recognizer().branch(
        Transcript(tuple(Said(message, at) for at, message in enumerate(messages))), ""
    )


async def keep(store: PlanStore, one: Branch, shared: SharedMemory | None = None, after: str = "") -> None:
    plan = build_final_prompt(one.messages, ContextConfig(max_context_tokens=10_000), model="gpt-4o").plan
    await store.keep(one.prefixes[-1], plan, shared, after=after)


async def test_the_longest_known_prefix_is_found() -> None:
    store = PlanStore()
    await keep(store, branch(2))
    await keep(store, branch(4))
    assert (await store.find(branch(9), "m", None)).length == 9
    assert (await store.find(branch(3), "m", None)).length == 5
    assert (await store.find(branch(9, "Hello."), "m", None)).length == 0


async def test_a_long_known_prefix_far_back_is_found_with_others() -> None:
    shared = SharedMemory()
    await keep(PlanStore(), branch(2), shared)
    found = await PlanStore().find(branch(40), "m", shared)
    assert found.length == 5
    assert found.plan is not None


async def test_memory_is_bounded() -> None:
    store = PlanStore(plans=3, warm=2_500)
    for number in range(10):
        await keep(store, branch(1, f"Hi {number}."))
    assert [(await store.find(branch(1, f"Hi {number}."), "m", None)).length for number in range(10)] == [
        *[0] * 7, *[3] * 3,
    ]  # fmt: skip
    plans = [(await store.find(branch(1, f"Hi {number}."), "m", None)).plan for number in (7, 8, 9)]
    assert [plan is not None and plan.index is not None for plan in plans] == [False, False, True]


def test_equal_messages_are_one_object_and_few_are_held() -> None:
    recognizer = Recognizer(limit=2_000)
    said = Transcript(tuple(Said(user(f"Message {number}."), number) for number in range(50)))
    one, other = recognizer.branch(said, ""), recognizer.branch(said, "")
    assert one.prefixes == other.prefixes
    assert recognizer.branch(Transcript(said.said[-1:]), "").messages[0] is other.messages[-1]
    assert recognizer._size <= 2_000


def test_a_request_may_have_ended_before_any_answer_and_before_more_of_the_user() -> None:
    messages = [user("Go."), assistant("", ("c1", "f"), ("c2", "f")), tool("c1", "x"), tool("c2", "x")]
    said = [*messages, user("Stop."), assistant("Yes."), user("Go on.")]
    one = Recognizer().branch(Transcript(tuple(Said(message, at) for at, message in enumerate(said))), "")
    assert one.ends() == [7, 5, 4, 1]
