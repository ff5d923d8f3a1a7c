"""Check the user's limits on costs, and ask before a request may pass one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.request.builder import PlannedRequest
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.store_queue import off_loop
from rolling_chat.events import Listener, SpendingQuestion
from rolling_chat.figures import dollars
from rolling_chat.providers.model_ref import ModelRef

SESSION, DAY = "max_cost_session", "max_cost_day"


class SpendingLimitError(ChatError):
    """A request that is not sent because of a limit on costs."""


@dataclass(slots=True)
class Spending:
    """Checks the cost limits of the settings before each request of one session.

    The next request is priced as if nothing were cached and its answer filled the room reserved for it.
    `raised` is how much the user has raised each limit, in dollars. `told_unpriced`: the user has been told
    that the model has no known price. `asker` is the task that sends the requests, if any, which asks while
    it holds the lock `asking`. `in_flight` has the prices of parallel requests whose cost is not known yet.
    """

    runtime: Runtime
    session_id: str
    listener: Listener
    raised: dict[str, float] = field(default_factory=dict)
    told_unpriced: bool = False
    asker: str = ""
    asking: asyncio.Lock | None = None
    in_flight: dict[int, float] = field(default_factory=dict)

    def named(self, asker: str, asking: asyncio.Lock) -> Spending:
        """Return the same limits for a task, whose questions name it and are asked one at a time."""
        return replace(self, asker=asker, asking=asking)

    def settle(self) -> None:
        """Forget the price of the last request, because its cost is now in the store."""
        self.in_flight.pop(id(self), None)

    async def check(self, planned: PlannedRequest) -> str:
        """Ask the user before a limit is passed; return a line for the user, if any.

        Raises SpendingLimitError if the request must not be sent.
        """
        limits = dict(self._limits())
        model = planned.request.model
        if not limits or ModelRef.parse(model).is_demo:
            return ""
        price = self.price_of(planned)
        if price is None:
            return self._unpriced(model, next(iter(limits)))
        self.in_flight[id(self)] = price
        try:
            for name, limit in limits.items():
                await self._keep(name, limit, price)
        except BaseException:
            self.settle()
            raise
        return ""

    def forbids(self, planned: PlannedRequest) -> str:
        """Return the limit that a request in the background might pass; empty if none."""
        price = self.price_of(planned)
        if price is None or ModelRef.parse(planned.request.model).is_demo:
            return ""
        for name, limit in self._limits():
            if self._is_passed(name, limit, price, self.spent(name)):
                return f"agent.{name}"
        return ""

    def price_of(self, planned: PlannedRequest) -> float | None:
        """Return what a request may cost, in US dollars; None if the model's price is unknown."""
        info = self.runtime.catalog.lookup(planned.request.model)
        if info is None:
            return None
        prompt = max(planned.report.token_count, 0)
        prices = info.prices_of(prompt)
        if prices.input is None or prices.output is None:
            return None
        return prompt * prices.input + planned.report.reserve * prices.output

    def spent(self, name: str) -> float:
        """Return the cost of this session, or of all sessions today, in US dollars; `name` is the limit."""
        store = self.runtime.store
        if name == SESSION:
            return store.usage(self.session_id).cost or 0.0
        now = time.localtime(self.runtime.clock())
        midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
        return store.cost_since(midnight)

    def lines(self) -> list[str]:
        """Return lines about today's cost and the limits that are set."""
        lines = [f"today, in all sessions: {dollars(self.spent(DAY))}"]
        for name, limit in self._limits():
            more = self.raised.get(name, 0.0)
            lines.append(f"limit: {dollars(limit + more)} (agent.{name})")
        return lines

    def _limits(self) -> Iterator[tuple[str, float]]:
        agent = self.runtime.settings.agent
        for name, limit in ((SESSION, agent.max_cost_session), (DAY, agent.max_cost_day)):
            if limit:
                yield name, limit

    def _is_passed(self, name: str, limit: float, price: float, spent: float) -> bool:
        """Return whether a request of that price, with those in flight, may pass a limit."""
        return spent + self._pending + price > limit + self.raised.get(name, 0.0)

    @property
    def _pending(self) -> float:
        """The price of the requests in flight, without the own one."""
        return sum(tuple(self.in_flight.values())) - self.in_flight.get(id(self), 0.0)

    async def _keep(self, name: str, limit: float, price: float) -> None:
        if not self._is_passed(name, limit, price, await self._spent_now(name)):
            return
        async with self.asking or contextlib.nullcontext():
            spent = await self._spent_now(name)
            # another answer may have raised the limit
            if self._is_passed(name, limit, price, spent):
                await self._ask(name, limit, price, spent + self._pending)

    async def _spent_now(self, name: str) -> float:
        return await off_loop(self.runtime.store, partial(self.spent, name))

    async def _ask(self, name: str, limit: float, price: float, spent: float) -> None:
        allowed = limit + self.raised.get(name, 0.0)
        what = "This session" if name == SESSION else "Today"
        line = (
            f"{what} has cost {dollars(spent)}, and the next request may cost {dollars(price)}: "
            f"more than {dollars(allowed)} (agent.{name})"
        )
        ask, asked = self.listener.ask_spending, f"{self.asker}: {line}" if self.asker else line
        if ask is None or not await ask(SpendingQuestion(asked, limit)):
            raise SpendingLimitError(f"Not sent: {line[0].lower()}{line[1:]}.")
        self.raised[name] = allowed - limit + max(limit, spent + price - allowed)

    def _unpriced(self, model: str, name: str) -> str:
        line = f"the price of {model} is not known, so agent.{name} cannot be kept"
        if self.listener.ask_spending is None:
            raise SpendingLimitError(f"Not sent: {line}.")
        was_told, self.told_unpriced = self.told_unpriced, True
        return "" if was_told else f"{line[0].upper()}{line[1:]}."
