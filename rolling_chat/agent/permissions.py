"""Decide which tool calls run without asking, which need the user's approval, and which are refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.runtime import Runtime
from rolling_chat.events import Listener, Permission, PermissionAnswer, PermissionRequest
from rolling_chat.permissions.path_patterns import is_protected
from rolling_chat.permissions.rules import (
    NETWORK,
    PermissionRule,
    Subject,
    find_denial,
    is_allowed,
    is_closed,
    opens,
    parse_rule,
)
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.folders import FolderRecord, change_record, read_record
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.write import add_to_setting
from rolling_chat.text import one_line
from rolling_chat.tools.base import Tool
from rolling_chat.tools.registry import all_tools
from rolling_chat.web_addresses import WebAddress, parse_address

log = logging.getLogger("rolling_chat.agent.permissions")

Policy: TypeAlias = Literal["read-only", "plan", "ask", "edits", "all"]
Verdict: TypeAlias = Literal["allowed", "ask", "refused"]

ALLOW, DENY = "agent.permissions.allow", "agent.permissions.deny"
_NO = PermissionAnswer(Permission.NO)


@dataclass(slots=True)
class Permissions:
    """Decides whether a tool call may run, by the approval policy, the rules and the user's answers.

    A rule that denies a call overrides everything else. Otherwise a tool that needs no permission runs. For
    one that does, `read-only` and `plan` refuse, `all` allows, and `ask` and `edits` ask unless a rule allows
    the call; `edits` also allows changes to files inside the folder, except protected ones. `session` has the
    rules from the user's answers, which end with the session, and `folder` those stored for the working
    folder; `fault` says why these could not be read or stored.

    A doubtful call is one that the model wrote as text and may have meant to quote. It is asked about under
    every policy, even if the tool needs no permission, unless a rule allows it. `knows_written_calls` is set
    once the user has been told about such calls. `refused_calls` are those that the user refused, by tool and
    detail: no hook can allow them later.
    """

    runtime: Runtime
    listener: Listener
    policy: Policy
    allow: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    session: list[PermissionRule] = field(default_factory=list)
    folder: tuple[PermissionRule, ...] = ()
    denied_in_folder: tuple[PermissionRule, ...] = ()
    fault: str = ""
    knows_written_calls: bool = False
    refused_calls: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, runtime: Runtime, listener: Listener) -> Permissions:
        """Create the permissions from the settings and from the rules stored for the folder.

        Raises SettingsError if a rule of the settings names an unknown tool.
        """
        settings, tools = runtime.settings, [*(tool.name for tool in all_tools()), NETWORK]
        rules = settings.agent.permissions
        permissions = cls(
            runtime,
            listener,
            settings.agent.approvals,
            _read(rules.allow, ALLOW, settings, tools),
            _read(rules.deny, DENY, settings, tools),
        )
        permissions.read_folder()
        return permissions

    def read_folder(self) -> None:
        """Read the rules stored for the folder; there are none if they cannot be read."""
        try:
            record = read_record(self.runtime.paths, self.runtime.folder.resolve())
            self.folder = tuple(map(parse_rule, record.allow))
            self.denied_in_folder = tuple(map(parse_rule, record.deny))
        except (SettingsError, ValueError) as error:
            self.fault = f"The permission rules of this folder cannot be read: {error}"
            self.folder = self.denied_in_folder = ()

    @property
    def denied(self) -> tuple[PermissionRule, ...]:
        """The rules that deny calls: those of the settings, then those of the folder."""
        return (*self.deny, *self.denied_in_folder)

    def verdict(
        self,
        tool: Tool,
        subject: Subject,
        *,
        is_edit: bool = False,
        exact_only: Collection[str] = (),
        doubtful: bool = False,
    ) -> Verdict:
        """Return whether to allow, refuse or ask about a call of `tool` with `subject`.

        `is_edit`: it changes files. `exact_only` are those of its paths that the policy `edits` does not
        allow, and that a rule allows only without a star.
        """
        if find_denial(self.denied, tool.name, subject) is not None:
            return "refused"
        if is_closed(self._allowing, tool.name, subject):
            return "refused"
        if not doubtful and (not tool.needs_permission or self.policy == "all"):
            return "allowed"
        if self.policy in ("read-only", "plan") and tool.needs_permission:
            return "refused"
        if is_allowed(self._allowing, tool.name, subject, exact_only):
            return "allowed"
        allows_edit = self.policy == "edits" and is_edit and not doubtful
        if allows_edit and not exact_only and not any(map(is_protected, subject)):
            return "allowed"
        return "ask" if self.listener.ask is not None else "refused"

    def opens(self, address: WebAddress) -> bool:
        """Return whether a rule names an address by scheme, host and port, so that it may be a local one."""
        return opens(self._allowing, address)

    @property
    def _allowing(self) -> tuple[PermissionRule, ...]:
        return (*self.allow, *self.folder, *self.session)

    async def decide(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the user about a call; the answer is no if the question cannot be shown."""
        ask = self.listener.ask
        if ask is None:
            return _NO
        try:
            answer = await ask(request)
        except Exception:
            log.exception("asking for permission failed")
            return _NO
        rule = request.rule
        if rule is None or (answer.permission is Permission.FOLDER and self._keep_in_folder(rule)):
            return answer
        if answer.permission in (Permission.SESSION, Permission.FOLDER) and rule not in self.session:
            self.session.append(rule)
        return answer

    def _keep_in_folder(self, rule: PermissionRule) -> bool:
        """Store a rule for the folder; return False if that fails."""
        try:
            self._change_folder(lambda rules: (*rules, rule.text))
        except SettingsError as error:
            self.fault = f"The rule holds for this session only: {error}"
            return False
        return True

    def _change_folder(self, change: Callable[[tuple[str, ...]], Iterable[str]]) -> None:
        """Change the rules stored for the folder, to which another process may have added some."""

        def changed(record: FolderRecord) -> FolderRecord:
            return replace(record, allow=tuple(dict.fromkeys(change(record.allow))))

        record = change_record(self.runtime.paths, self.runtime.folder.resolve(), changed)
        self.folder = tuple(map(parse_rule, record.allow))

    def refusal(self, tool: Tool, subject: Subject, *, doubtful: bool = False) -> str:
        """Return the tool result for a call that was refused without asking the user."""
        denial = find_denial(self.denied, tool.name, subject)
        if denial is not None:
            return (
                f"Not run: the permission rule {denial.text} denies this. Do not try the same by other means."
            )
        if is_closed(self._allowing, tool.name, subject):
            origin = parse_address(str(subject)).origin
            return (
                f"Not run: {origin} is this machine or its local network. Only a permission rule of the "
                f"user's that names it whole opens it, such as {tool.name}({origin})."
            )
        if self.policy == "plan" and tool.needs_permission:
            return f"Not run: {tool.name} is not allowed in plan mode. Finish the plan without it."
        if self.policy == "read-only" and tool.needs_permission:
            return f"Not run: {tool.name} is not allowed here (approvals are read-only). Go on without it."
        if doubtful:
            return (
                f"Not run: this call of {tool.name} was written as text, and nobody can be asked here. "
                "Call the tool by the API, or answer without it."
            )
        return (
            f"Not run: {tool.name} needs the user's permission, and nobody can be asked here "
            f"(approvals are {self.policy!r}). Go on without it, or say what you would have run."
        )

    def take_fault(self) -> str:
        """Return, once, why the folder's rules could not be read or stored; empty if they could."""
        fault, self.fault = self.fault, ""
        return fault

    def lets_out(self, command: str) -> bool:
        """Return whether a command in the sandbox has network: if a rule allows it and none denies it."""
        if find_denial(self.denied, NETWORK, command) is not None:
            return False
        return is_allowed(self._allowing, NETWORK, command)

    def add(self, text: str) -> PermissionRule:
        """Add a rule that the user typed, for this session. Raises ChatError."""
        try:
            rule = parse_rule(text)
        except ValueError as error:
            raise ChatError(f"“{one_line(text, 80)}” {error}.") from None
        tools = [*(tool.name for tool in all_tools()), NETWORK]
        if not rule.is_known(tools):
            raise ChatError(f"“{one_line(text, 80)}” is about no tool; the tools are: {', '.join(tools)}.")
        if rule not in self.session:
            self.session.append(rule)
        return rule

    def remove(self, rule: PermissionRule) -> None:
        """Remove a rule of the session or the folder, so that the user is asked again. Raises ChatError."""
        if rule in self.session:
            self.session.remove(rule)
        if rule in self.folder:
            with in_words():
                self._change_folder(lambda rules: (text for text in rules if text != rule.text))

    def keep(self, rule: PermissionRule) -> None:
        """Move a rule from the session or the folder to the user's settings. Raises ChatError."""
        if not rule.can_be_kept:
            raise ChatError("A command of several lines cannot be kept in the settings.")
        with in_words():
            add_to_setting(self.runtime.paths, ALLOW, rule.text)
        self.allow = (*self.allow, rule)
        agent = self.runtime.settings.agent
        kept = replace(agent.permissions, allow=(*agent.permissions.allow, rule.text))
        self.runtime.settings = replace(self.runtime.settings, agent=replace(agent, permissions=kept))
        self.remove(rule)


def written_calls_line(model: str, *, can_ask: bool = True) -> str:
    """Return a line that tells the user that a model writes its calls as text."""
    what = "each is asked about" if can_ask else "none runs here without a rule that allows it"
    return (
        f"{model} writes its tool calls as text, so {what}. If it always does, put "
        f'tool_calls = "text" below [models."{model}"] in the settings.'
    )


def asked_by(asker: str, title: str) -> str:
    """Return the title of a question, prefixed with the task that asks, if any."""
    return f"{asker} asks: {title[0].lower()}{title[1:]}" if asker else title


def refused_by_user(words: str) -> str:
    """Return the tool result for a call that the user refused, with the user's words."""
    if not words:
        return "Not run: the user refused this call. Do not try the same by other means; ask them."
    return f"Not run: the user refused this call. They say: {words}"


def _read(
    texts: Sequence[str], key: str, settings: Settings, tools: Collection[str]
) -> tuple[PermissionRule, ...]:
    rules = tuple(parse_rule(text) for text in texts)
    unknown = next((rule for rule in rules if not rule.is_known(tools)), None)
    if unknown is not None:
        origin = settings.origins.get(key, "settings")
        raise SettingsError(
            f'{origin}: {key}: "{unknown.text}" is about no tool; the tools are: {", ".join(tools)}'
        )
    return rules
