from __future__ import annotations

import asyncio

from rolling_chat.agent.turn.running import MAX_UNREAD, EventQueue
from rolling_chat.events import Noticed


async def _fill(events: EventQueue, count: int) -> None:
    for number in range(count):
        await events.put(Noticed(str(number)))
    events.close()


async def test_events_that_nobody_reads_hold_the_turn_up_and_all_of_them_come_in_order() -> None:
    events = EventQueue()
    writing = asyncio.create_task(_fill(events, 3 * MAX_UNREAD))
    done, _ = await asyncio.wait({writing}, timeout=0.01)
    assert not done

    read = [event async for event in events.read()]

    await writing
    assert read == [Noticed(str(number)) for number in range(3 * MAX_UNREAD)]


async def test_a_turn_that_is_stopped_while_it_is_held_up_loses_no_event() -> None:
    events = EventQueue()
    writing = asyncio.create_task(_fill(events, MAX_UNREAD + 1))
    await asyncio.wait({writing}, timeout=0.01)
    writing.cancel()
    await asyncio.wait({writing})
    events.close()

    assert len([event async for event in events.read()]) == MAX_UNREAD
