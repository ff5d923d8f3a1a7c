"""The setup of a session's requests: the model and its limits, the system prompt and the tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rolling_chat.agent.request.inputs import RequestInputs
from rolling_chat.agent.request.instructions import MAX_BYTES, Instructions, read_instructions, system_prompt
from rolling_chat.agent.request.model_limits import (
    context_config,
    effort_of,
    knowledge_of,
    offers_tools,
    window_of,
)
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import ContextConfig, Measurements
from rolling_chat.context.calibration import Group
from rolling_chat.extensions.skills import MAX_LISTED, Skill, Skills, read_skills
from rolling_chat.message_lines import RECALL
from rolling_chat.messages import JsonObject
from rolling_chat.notes import NOTE_TOOL
from rolling_chat.sessions.records import Learned
from rolling_chat.settings.schema import ContextSettings, Effort, ToolCalls
from rolling_chat.tools import Tool
from rolling_chat.tools.read_file import READ_FILE
from rolling_chat.tools.skill import SKILL


class RequestSetup:
    """The model that answers, with its limits, system prompt and tools.

    `address` is that of the model's server: empty for the provider's own, None if unknown. `revision` grows
    whenever requests may have changed.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        started_at: float,
        model: str,
        address: str | None,
        rolling: bool,
        tools: Sequence[Tool],
    ) -> None:
        self._runtime = runtime
        self._started_at = started_at
        self._all_tools = tuple(tools)
        self._more_tools: tuple[Tool, ...] = ()  # of MCP servers
        self.rolling = rolling
        self._effort: Effort | None = None  # the session's own
        self.revision = 0
        self.instructions = Instructions()
        self.skills = Skills()
        self.model, self.address = model, address
        self._has_learned = self._has_measured = False  # learned, but not stored yet
        self.use_model(model, address)

    def use_model(self, model: str, address: str | None) -> None:
        """Use another model from the next request on, with the limits and calibration stored for it."""
        self.keep_knowledge()
        self.model, self.address = model, address
        known = knowledge_of(model, address or "", self._runtime.store)
        self.learned, self.measurements = known.learned, known.measurements
        self.revision += 1
        self.read_instructions()

    def read_instructions(self) -> None:
        """Read instructions and skills again; call it once a turn: the prompt does not change within one."""
        runtime = self._runtime
        runtime.trust.look_again()
        # As many bytes as the window has tokens fill about a quarter of it.
        max_bytes = min(MAX_BYTES, self.window)
        before = (self.instructions, self.skills)
        self.instructions = read_instructions(runtime.trust, runtime.paths.instructions_file, max_bytes)
        self.skills = read_skills(runtime.trust, runtime.paths, min(MAX_LISTED, self.window // 2))
        self.revision += (self.instructions, self.skills) != before

    @property
    def effort(self) -> str:
        """The reasoning effort that requests ask for: the session's, else the setting's; empty for none."""
        settings = self._runtime.settings.for_model(self.model)
        wanted = settings.reasoning_effort if self._effort is None else self._effort
        return effort_of(self.model, wanted, self._runtime.catalog)

    def use_effort(self, effort: Effort | None) -> None:
        """Ask for another reasoning effort from the next request on; None for that of the settings."""
        self._effort = effort
        self.revision += 1

    def use_served(self) -> None:
        """Plan with the window that the model's server has reported by now."""
        self.revision += 1
        self.read_instructions()

    def learn(self, learned: Learned) -> None:
        """Use what a refusal revealed about this model's window; `keep_knowledge` stores it."""
        self.learned, self._has_learned = learned, True
        self.revision += 1

    def measure(self, group: Group | None, *, is_counted: bool = False) -> None:
        """Use what a reply revealed about how this model counts tokens; `keep_knowledge` stores it.

        `is_counted` is set for a count of a request that was not answered.
        """
        added = self.measurements.add(group)
        self._use_measurements(added.counted() if is_counted else added)

    def note_try(self) -> None:
        """Note that the model answered or refused a request without a count: the next must fit by bound."""
        if self.measurements.calibration.knows_nothing:
            self._use_measurements(self.measurements.tried())

    def distrust_counts(self) -> None:
        """Forget how this model counts tokens: its provider miscounted a prompt."""
        self._use_measurements(Measurements(tries=self.measurements.tries + 1, is_miscounted=True))

    def _use_measurements(self, measurements: Measurements) -> None:
        self.measurements, self._has_measured = measurements, True
        self.revision += 1

    def keep_knowledge(self) -> None:
        """Store what was learned about this model since the last call, for later processes too."""
        models, whom = self._runtime.store.models, (self.model, self.address or "")
        if self._has_learned:
            models.keep_learned(*whom, self.learned)
        if self._has_measured:
            models.keep_measured(*whom, self.measurements.to_json())
        self._has_learned = self._has_measured = False

    def use_more_tools(self, tools: Sequence[Tool]) -> None:
        """Offer `tools` besides the session's own from the next request on, replacing earlier ones."""
        if tuple(tools) != self._more_tools:
            self._more_tools = tuple(tools)
            self.revision += 1

    @property
    def window(self) -> int:
        """The context window, W, in the model's own tokens."""
        runtime = self._runtime
        return window_of(
            self.model, runtime.settings, runtime.catalog, self.learned, served=self.served_window
        )

    @property
    def served_window(self) -> int:
        """The window that the model's server named, in tokens; 0 if it named none."""
        return self._runtime.server_facts.window(self.model, self.address)

    @property
    def tool_calls(self) -> ToolCalls:
        """The form of the model's calls: the API's own, text, or whichever it uses."""
        return self._runtime.settings.for_model(self.model).tool_calls

    @property
    def reads_files(self) -> bool:
        """Whether the model is offered the tool that reads files."""
        return any(tool.name == READ_FILE for tool in self.tools)

    @property
    def takes_pictures(self) -> bool:
        """Whether the model is sent pictures: by the setting, or if the catalog says that it accepts them."""
        match self._runtime.settings.for_model(self.model).pictures:
            case "send":
                return True
            case "omit":
                return False
            case _:
                known = self._runtime.catalog.lookup(self.model)
                return known is not None and known.supports_vision

    @property
    def chosen_effort(self) -> Effort | None:
        """The reasoning effort chosen for the session; None for that of the settings."""
        return self._effort

    @property
    def all_tools(self) -> tuple[Tool, ...]:
        """The tools of the session and of its MCP servers, including those that are not offered."""
        return (*self._all_tools, *self._more_tools)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered; none if it is known not to support tools.

        With rolling on, `recall` and `note` are offered from the first request, so that the beginning of the
        prompt does not change; `skill` is offered if there are skills.
        """
        return self._offered(rolling=self.rolling)

    @property
    def config(self) -> ContextConfig:
        """The pipeline's configuration for the next request."""
        return self.config_under(self._runtime.settings.context, rolling=self.rolling)

    def config_under(self, context: ContextSettings, *, rolling: bool) -> ContextConfig:
        """Return the pipeline's configuration under other settings."""
        config = context_config(
            self.model, replace(self._runtime.settings, context=context), self._runtime.catalog,
            rolling=rolling, system=self._system(rolling=rolling), tools=self._schemas(rolling=rolling),
            learned=self.learned, served=self.served_window, effort=self.effort,
            calibration=self.measurements.calibration,
        )  # fmt: skip
        # a learned limit comes from a refusal, so the model has been tried
        return config if self.learned.limit else replace(config, unproven_share=1.0)

    def inputs(self, config: ContextConfig) -> RequestInputs:
        """Return the inputs of a request under `config`."""
        system = self._system(rolling=config.enabled)
        schemas = tuple(self._schemas(rolling=config.enabled))
        return RequestInputs(config, system, schemas, self.tool_calls == "text", self.takes_pictures)

    def _offered(self, *, rolling: bool) -> tuple[Tool, ...]:
        if self.tool_calls != "text" and not offers_tools(self.model, self._runtime.catalog):
            return ()
        unneeded = {
            name
            for name, is_needed in ((RECALL, rolling), (NOTE_TOOL, rolling), (SKILL, self.skills.listed))
            if not is_needed
        }
        return tuple(tool for tool in self.all_tools if tool.name not in unneeded)

    @property
    def listed_skills(self) -> tuple[tuple[Skill, str], ...]:
        """The skills that the system prompt lists, each with its line; none if the model cannot use them."""
        return self.skills.listed if any(tool.name == SKILL for tool in self.tools) else ()

    def _system(self, *, rolling: bool) -> str:
        tools = self._offered(rolling=rolling)
        skills = self.skills.text if any(tool.name == SKILL for tool in tools) else ""
        parts = (self.instructions.text, skills)
        return system_prompt(self._runtime.folder, self._started_at, tools, "\n\n".join(filter(None, parts)))

    def _schemas(self, *, rolling: bool) -> list[JsonObject]:
        return [tool.schema for tool in self._offered(rolling=rolling)]
