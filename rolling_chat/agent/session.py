"""One open session: creates and closes everything that belongs to it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rolling_chat.agent.context_settings import Overrides
from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.exporting import export_session, session_as_markdown
from rolling_chat.agent.extensions import SessionExtensions
from rolling_chat.agent.history import History
from rolling_chat.agent.hooks.session_hooks import SessionHooks
from rolling_chat.agent.memory.branch_memory import BranchMemory
from rolling_chat.agent.memory.left_out import LeftOut
from rolling_chat.agent.memory.notes import SessionNotes
from rolling_chat.agent.memory.pins import SessionPins
from rolling_chat.agent.memory.summaries import Summaries
from rolling_chat.agent.memory.summarizer import Summarizer
from rolling_chat.agent.models import (
    call_address,
    known_addresses,
    missing_key_line,
    model_warnings,
    pick_model,
    window_line,
)
from rolling_chat.agent.oversized_messages import OversizedMessages
from rolling_chat.agent.permissions import Permissions
from rolling_chat.agent.plan_mode import PlanMode
from rolling_chat.agent.request.instructions import Instructions
from rolling_chat.agent.request.preview import RequestPreview
from rolling_chat.agent.request.prompt_counter import PromptCounter
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_files import SessionFiles
from rolling_chat.agent.session_mentions import SessionMentions
from rolling_chat.agent.session_servers import SessionServers
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.spending import Spending
from rolling_chat.agent.todo_tracking import TodoTracker
from rolling_chat.agent.turn.fallbacks import Fallbacks, ModelAt
from rolling_chat.agent.turn.hooked_calls import HookedCalls
from rolling_chat.agent.turn.loop import AgentLoop
from rolling_chat.agent.turn.room_notice import RoomNotice
from rolling_chat.agent.turn.running import TurnGate
from rolling_chat.agent.turn.sandboxing import Sandboxing
from rolling_chat.agent.turn.tasks import TaskRunner, TaskScope
from rolling_chat.agent.turn.tool_calls import CallRunner
from rolling_chat.agent.turn.waiting import WaitingMessages
from rolling_chat.events import Emit, Listener, Noticed
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.discovery import ModelChoice
from rolling_chat.redaction import secrets_in, without_secrets
from rolling_chat.sessions.records import SessionInfo
from rolling_chat.todo_list import TodoList
from rolling_chat.tools import ToolContext
from rolling_chat.tools.registry import choose_tools
from rolling_chat.tools.run_command import MAX_TIMEOUT, RunCommand


class Session:
    """One open session.

    If another process has it open, it is only followed: `holder` describes that process, nothing is written,
    and `refresh` reads what the other process wrote. `scope` is set for the session of a running task.
    Raises SettingsError, StoreError and ToolError if it cannot be opened.
    """

    def __init__(
        self,
        runtime: Runtime,
        info: SessionInfo,
        listener: Listener,
        *,
        model: str,
        address: str | None,
        rolling: bool,
        model_line: str,
        scope: TaskScope | None = None,
    ) -> None:
        self._runtime = runtime
        self._scope = scope
        self.permissions = Permissions.of(runtime, listener) if scope is None else scope.permissions
        agent = runtime.settings.agent
        self.state = SessionState(
            runtime, info, model=model, address=address, rolling=rolling,
            tools=choose_tools(agent.tools, agent.task_models) if scope is None else scope.tools,
            listener=listener,
        )  # fmt: skip
        self.conversation = self.state.conversation
        self.setup = self.state.setup
        self.planner = self.state.planner
        self.gate = TurnGate()
        self.servers = SessionServers(runtime, self.state, self.gate, listener, has_any=scope is None)
        self.spending = Spending(runtime, info.id, listener) if scope is None else scope.spending
        self.summarizer = Summarizer(runtime, self.planner, self.state.spend, self.gate, self.spending)
        self.hooks = SessionHooks(
            runtime, self.state, self.permissions, info.id if scope is None else scope.owner,
            is_task=scope is not None,
        )  # fmt: skip
        self.summaries = Summaries(
            runtime, self.state, self.gate, self.summarizer, listener, before=self.hooks.before_compact
        )
        self.left_out = LeftOut(self.state, self.summaries)
        self._counter = PromptCounter(runtime, self.planner)
        self.preview = RequestPreview(self.state, self._counter)
        self.mentions = SessionMentions(runtime, self.state, listener, lambda: self.servers.in_use)
        self.pins = SessionPins(self.state)
        self.notes = SessionNotes(self.state)
        self.room = RoomNotice(self.conversation, self.planner, self.state)
        self.files = SessionFiles(runtime, info.id)
        self.history = History(runtime, self.state, self.gate, self.summaries)
        self._todo = TodoTracker(self.conversation)
        self.plan_mode = PlanMode(self.permissions, self.conversation)
        self.overrides = Overrides(runtime, self.state)
        self.oversized = OversizedMessages(
            runtime, self.state, self.gate, self.summaries, self.history, self.preview, self.overrides
        )
        self.fallbacks = Fallbacks(runtime, self.state)
        self.extensions = SessionExtensions(runtime, self.state, self.permissions)
        self.notices: list[str] = [
            *self.state.notices, *self.fallbacks.faults(), *filter(None, [self.permissions.take_fault()]),
            *self.take_news(),
        ]  # fmt: skip
        self._named = (self.model, self.address, model_line)

    @property
    def info(self) -> SessionInfo:
        """The session's row as session lists show it, up to date."""
        return self.state.info

    @property
    def todo(self) -> TodoList | None:
        """The model's to-do list at this point of the conversation, if any."""
        return self._todo.current

    @property
    def holder(self) -> str:
        """A description of the other process that has the session open; empty if there is none."""
        return self.state.holder

    @property
    def messages(self) -> Sequence[Message]:
        """All messages of the current branch, root first, without a reply being streamed.

        Missing ones are read now, which takes a while; `preview.ready` waits for them off the event loop.
        Raises ChatError.
        """
        with in_words():
            return self.conversation.messages

    async def read_up(self, *, whole: bool) -> None:
        """Read older messages of the branch, the next ones or all (`whole`). Raises ChatError."""
        with in_words():
            await (self.conversation.read_rest() if whole else self.conversation.read_up())

    @property
    def model(self) -> str:
        """The model that answers: the session's own (`chosen`), or a fallback while that is down."""
        return self.setup.model

    @property
    def chosen(self) -> ModelAt:
        """The session's own model, which answers unless it is down, with its address."""
        return self.fallbacks.own

    @property
    def address(self) -> str | None:
        """The address of the model's server: empty for the provider's own, None if unknown."""
        return self.setup.address

    @property
    def rolling(self) -> bool:
        """Whether rolling context is on."""
        return self.setup.rolling

    @property
    def model_line(self) -> str:
        """One line about the model: its name, where that came from, and how to change it."""
        if self.fallbacks.is_standing_in:
            source = f"the fallback setting, for {self.chosen.model} is down"
            return ModelChoice(self.model, source, self.address).line
        return self.chosen_line

    @property
    def chosen_line(self) -> str:
        """One line about the session's own model, even while a fallback answers."""
        chosen, (model, address, line) = self.chosen, self._named
        if chosen == (model, address):
            return line
        # the session was taken over from another process, with the model used there
        return ModelChoice(chosen.model, "this session", chosen.address).line

    @property
    def known_addresses(self) -> Mapping[str, str]:
        """The known addresses of the model, as `set_model` accepts them, each with its origin."""
        return known_addresses(self._runtime, self.model)

    @property
    def model_warnings(self) -> Sequence[str]:
        """Lines about what the model lacks: a key, a known window."""
        return tuple(model_warnings(self._runtime, self.model, self.address))

    @property
    def missing_key(self) -> str:
        """A line that names the key that the model lacks; empty if it lacks none."""
        return missing_key_line(self._runtime, self.model, self.address)

    @property
    def resume_command(self) -> str:
        """The shell command that resumes this session; empty if it is not saved."""
        if not self._runtime.save:
            return ""
        where = f" --api-base {shlex.quote(self.address)}" if self.address else ""
        return f"rolling-chat --resume {self.info.short}{where}"

    @property
    def instructions(self) -> Instructions:
        """The instruction files in the system prompt."""
        return self.setup.instructions

    def read_instructions(self) -> None:
        """Read instructions and skills again, unless a turn runs: its prompt does not change."""
        if self.gate.idle.is_set():
            self.read_anew()

    def read_anew(self) -> None:
        """Read everything that is read once per turn: instructions, skills, commands and hooks."""
        self.setup.read_instructions()
        self.extensions.read()
        self.hooks.read()

    def take_news(self) -> list[str]:
        """Return lines about instructions, skills, commands and hooks that were left out, each line once."""
        return self.extensions.take_news(self.hooks.faults)

    def instruction_sizes(self) -> Sequence[tuple[str, int]]:
        """Return the name and the tokens of each instruction file in the system prompt."""
        count = self.state.sizes.estimator.count_text
        return tuple((section.name, count(section.text)) for section in self.instructions.sections)

    def skill_sizes(self) -> Sequence[tuple[str, int]]:
        """Return the name of each skill in the system prompt and the tokens of its line."""
        count = self.state.sizes.estimator.count_text
        return tuple((skill.name, count(row)) for skill, row in self.setup.listed_skills)

    @property
    def has_plan(self) -> bool:
        """Whether the newest message is an answer in plan mode: a plan that could be carried out."""
        recent = self.conversation.recent
        return self.permissions.policy == "plan" and bool(recent) and recent[-1].role == "assistant"

    def result_tokens(self, messages: Sequence[Message]) -> Mapping[str, int]:
        """Return the tokens of the tool results among `messages` that have been counted, by message id."""
        counts = self.state.counts
        known = ((one.id, counts.known_tokens(one)) for one in messages if one.role == "tool")
        return {message_id: tokens for message_id, tokens in known if tokens}

    def set_model(self, model: str, address: str = "") -> str:
        """Use `model` from the next request on; return a line that reports it.

        `address` is that of its server, or "default" for the provider's own. If it is empty, a model of the
        same provider keeps the current address.
        """
        self.gate.require_idle()
        chosen = self.chosen
        here = replace(self.info, model=chosen.model, api_base=chosen.address)
        with in_words():
            former = self.state.former_addresses
            picked = pick_model(self._runtime, model, here, address=address, former=former)
            self.fallbacks.forget()
            self.state.use_model(picked.model, picked.address)
        if address:
            self._runtime.api_base = address
        line = replace(picked, source="/model").described
        self._named = (self.model, self.address, line)
        return line

    def require_idle(self) -> None:
        """Raise ChatError if a turn runs or it is a task's session."""
        self.gate.require_idle()
        if self.info.task_of:
            raise ChatError("This session of a task is read-only. /fork makes a copy that you can continue.")

    def require_sendable(self) -> None:
        """Raise ChatError while a turn runs or another process has the session open, and for a task's."""
        self.require_idle()
        self.state.make_ours()
        self.state.require_address()

    def turn_loop(self, emit: Emit, waiting: WaitingMessages) -> AgentLoop:
        """Return the loop of one turn, for a conversation that ends with a message for the model to answer.

        The turn also sends the `waiting` messages that are added meanwhile.
        """
        runtime, setup, config = self._runtime, self.setup, self.setup.config
        tails = frozenset(name for name, end in config.tools.items() if end == "tail")
        environment = without_secrets(runtime.environ, runtime.settings.agent.environment)
        memory, scope = BranchMemory.of(self.conversation, self.planner), self._scope
        asker = scope.asker if scope is not None else ""
        asking = scope.asking if scope is not None else asyncio.Lock()
        tasks = self._task_runner(emit, asking) if scope is None else None
        calls = CallRunner(
            self.conversation, setup.tools, self.permissions,
            Sandboxing.of(runtime, self.permissions, asker),
            ToolContext(
                runtime.folder, environment, memory,
                self._is_attached if scope is None else scope.is_attached, self._last_seen,
                opens=self.permissions.opens, session=scope.owner if scope is not None else self.info.id,
                skills=setup.skills, notes=self.notes,
            ),
            runtime.settings.agent.max_tool_calls, emit, tails, setup.tool_calls == "text",
            tasks, asker,
            reply_id=scope.reply_id if scope is not None else "",
            hooks=HookedCalls(self.hooks, emit), asking=asking, room=self.room,
        )  # fmt: skip
        return AgentLoop(
            self.conversation, self.planner, self.preview.plan, runtime.provider, calls, emit,
            partial(self._ready_to_plan, emit), runtime.settings.agent.max_tool_iterations, waiting,
            self.mentions.attaching, self.spending, self.fallbacks, self.plan_mode, self.hooks,
            str(runtime.paths.log_file), self.room,
        )  # fmt: skip

    def _task_runner(self, emit: Emit, asking: asyncio.Lock) -> TaskRunner:
        return TaskRunner(
            self._runtime, self.setup, self.conversation, self.permissions, self.spending, self.fallbacks,
            asking, emit, self._is_attached, self._open_task,
        )  # fmt: skip

    def _open_task(self, info: SessionInfo, scope: TaskScope) -> Session:
        """Open the session of a task, with rolling context on so that it never stalls."""
        task = Session(
            self._runtime, info, Listener(),
            model=info.model, address=info.api_base, rolling=True, model_line="", scope=scope,
        )  # fmt: skip
        effort = self.setup.chosen_effort
        if effort is not None and info.model == self.model:
            task.state.use_effort(effort)
        return task

    async def run_own(self, command: str) -> str:
        """Run a command that the user typed, and return its output and exit code.

        It runs as `run_command` would, but needs no permission. Raises ChatError if it cannot be run.
        """
        runtime = self._runtime
        environment = without_secrets(runtime.environ, runtime.settings.agent.environment)
        with in_words():
            result = await RunCommand().run(
                {"command": command, "timeout": MAX_TIMEOUT}, ToolContext(runtime.folder, environment)
            )
        return result.text

    def _is_attached(self, path: str) -> bool:
        return self._runtime.attachments.is_kept(path) and self.conversation.is_said(path)

    def _last_seen(self, path: str) -> str | None:
        """Return the hash of a file from when this branch last knew all of it; None if it never did."""
        return self._runtime.store.last_known(path, self.head)

    async def ask_server(self) -> str:
        """Ask the model's server for its window, once and if it reports one; return a line if it changed."""
        facts, model, address = self._runtime.server_facts, self.model, self.address
        if self._runtime.settings.for_model(model).max_input_tokens or not facts.is_due(model, address):
            return ""
        before = self.setup.window
        await facts.ask(model, address, call_address(self._runtime, model, address))
        if (model, address) != (self.model, self.address):
            return ""
        self.setup.use_served()
        window = self.setup.window
        if facts.window(model, address) and window != before:
            return f"The window of {model} is {window:,} tokens (from {facts.source(model, address)})."
        return window_line(self._runtime, model, address)

    async def _ready_to_plan(self, emit: Emit) -> None:
        """Wait until summarizer requests are cancelled, servers started, the window known, a report made."""
        await self.summarizer.has_yielded()
        await self.servers.ready(emit)
        if line := await self.ask_server():
            await emit(Noticed(line))
        await self.preview.settled()

    async def count_beginning(self) -> None:
        """Have a server nearby, if it counts tokens, count the next request so far, for the gauge."""
        if self.gate.idle.is_set() and not self.state.is_followed:
            await self._counter.count_beginning(self.conversation.branch)

    def refresh(self) -> bool:
        """Read what another process has written to the session; return whether anything has changed.

        Once that process has released the session, or died, this one takes it over.
        """
        return self.gate.idle.is_set() and self.state.refresh()

    def usage_by_purpose(self) -> Mapping[str, tuple[int, Usage, int]]:
        """Return requests, usage and unpriced requests by purpose: "answer", "summary" or "task"."""
        with in_words():
            rows = self._runtime.store.usage_rows("purpose", self.info.id)
        return {row.name: (row.requests, row.usage, row.unpriced) for row in rows}

    def cache_misses(self) -> Sequence[tuple[str, int, int]]:
        """Return the causes of cache misses, each with its number of requests and of tokens read again."""
        with in_words():
            rows = self._runtime.store.cache_misses(self.info.id)
        return [(row.cause, row.requests, row.tokens) for row in rows]

    def rename(self, title: str) -> None:
        """Set the session's title."""
        title = " ".join(title.split())
        if not title:
            raise ChatError("A title needs at least one character.")
        self.state.update(title=title)

    def share(self, member: str, *, may_write: bool | None) -> None:
        """Let another user of the store read the session, or also write to it; None revokes that."""
        with in_words():
            self._runtime.store.share(self.info.id, member, may_write=may_write)

    def shared_with(self) -> Mapping[str, bool]:
        """Return the users with whom the session is shared, and whether each may write. Raises ChatError."""
        with in_words():
            return self._runtime.store.shared_with(self.info.id)

    @property
    def head(self) -> str:
        """The id of the branch's newest message; empty before the first."""
        messages = self.conversation.recent
        return messages[-1].id if messages else ""

    def export(self, target: str = "") -> Path:
        """Write the branch to a new file; `target` is its name or a format. Return the file."""
        with in_words():
            summary = self._runtime.store.summary(self.info.id)
        secrets = secrets_in(self._runtime.environ)
        return export_session(
            self.info, tuple(self.messages), target, self._runtime.folder, summary, secrets=secrets
        )

    def as_markdown(self, messages: Sequence[Message]) -> str:
        """Return messages of the session as one Markdown document; call it from a thread if they are many."""
        secrets = secrets_in(self._runtime.environ)
        return session_as_markdown(self.info, messages, secrets=secrets)

    def close(self) -> None:
        """Stop the session's background work and release the session; one without messages is deleted."""
        self._end_work()
        self.state.release()

    async def leave(self) -> None:
        """Close the session, off the event loop if its store is remote."""
        self._end_work()
        await self.conversation.queue.run(self.state.release)

    def _end_work(self) -> None:
        self.summaries.cancel()
        self.servers.close()
        self.hooks.close()
