"""Compare two requests to find why the provider's cache did not serve the later one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rolling_chat.messages import Usage
from rolling_chat.providers.cache_rules import CacheRule

# what may be missing from the cache because of estimates and block sizes: a share, and tokens
_SLACK, _SLACK_TOKENS = 0.1, 256


class MissCause(StrEnum):
    """The reason that a prompt was not read from the provider's cache; "model" includes another effort."""

    MODEL = "model"
    EXPIRED = "expired"
    TOOLS = "tools"
    INSTRUCTIONS = "instructions"
    TRIMMED = "trimmed"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """A request that the provider's cache did not serve: why, and how many tokens it had to read."""

    cause: MissCause
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptPrefix:
    """What a provider's cache recognizes a prompt by: a hash of each of its parts, in order.

    `messages` has the hash of each message as sent and its size, an upper bound in tokens; `tools_size` is
    that of the tools. Hashes are valid within one process.
    """

    tools: int
    instructions: int
    tool_choice: str
    effort: str
    messages: Sequence[tuple[int, int]]
    tools_size: int = 0

    @property
    def size(self) -> int:
        """The size of the prompt, as an upper bound in tokens."""
        return self.tools_size + sum(size for _, size in self.messages)

    def is_continued_by(self, later: PromptPrefix) -> bool:
        """Return whether a later prompt begins with all of this one's messages."""
        mine = [digest for digest, _ in self.messages]
        return mine == [digest for digest, _ in later.messages[: len(mine)]]

    def common_with(self, later: PromptPrefix) -> int:
        """Return the size of the beginning that a later prompt shares with this one."""
        if self.tools != later.tools:
            return 0
        total = later.tools_size
        for (mine, _), (theirs, size) in zip(self.messages, later.messages, strict=False):
            if mine != theirs:
                break
            total += size
        return total

    def kept_in(self, later: PromptPrefix) -> int:
        """Return the size of the parts that a later prompt shares with this one, at any index."""
        mine = Counter(digest for digest, _ in self.messages)
        total = later.tools_size if self.tools == later.tools else 0
        for digest, size in later.messages:
            if mine[digest]:
                mine[digest] -= 1
                total += size
        return total


NO_PREFIX = PromptPrefix(0, 0, "auto", "", ())


@dataclass(frozen=True, slots=True)
class AnsweredPrompt:
    """An answered prompt: when it was sent, in seconds since the epoch, and the reported usage.

    `prefix` is None if it is no longer known.
    """

    at: float
    usage: Usage
    prefix: PromptPrefix | None = None

    def cached_tokens(self, rule: CacheRule) -> int:
        """Return how many of its tokens are cached until the cache expires; 0 if it was too short."""
        usage = self.usage
        reported = usage.cached_read_tokens + usage.cached_write_tokens
        tokens = reported if rule.marked or usage.cached_write_tokens else usage.input_tokens
        return tokens if tokens >= rule.least else 0


def missed_tokens(now: AnsweredPrompt, before: AnsweredPrompt, rule: CacheRule) -> int:
    """Return how many tokens of the prompt `before` had to be read again; 0 if the cache served them."""
    expected = min(before.cached_tokens(rule), now.usage.input_tokens)
    if now.prefix is not None and before.prefix is not None and now.prefix.size:
        share = before.prefix.kept_in(now.prefix) / now.prefix.size
        expected = min(expected, int(share * now.usage.input_tokens))
    missed = expected - now.usage.cached_read_tokens
    is_missed = missed > max(_SLACK * expected, _SLACK_TOKENS)
    return missed if expected >= rule.least and is_missed else 0


def is_expired(now: AnsweredPrompt, before: AnsweredPrompt, rule: CacheRule) -> bool:
    """Return whether the cache of the prompt `before` had expired when the next was sent."""
    return rule.seconds is not None and now.at - before.at > rule.seconds


def find_cause(now: AnsweredPrompt, before: AnsweredPrompt, rule: CacheRule) -> MissCause:
    """Return why the cache of the prompt that the same model was sent `before` did not serve this one."""
    if is_expired(now, before, rule):
        return MissCause.EXPIRED
    mine, older = now.prefix, before.prefix
    if mine is None or older is None:
        return MissCause.PROVIDER
    if rule.counts_tool_choice and mine.effort != older.effort:
        return MissCause.MODEL
    if mine.tools != older.tools or (rule.counts_tool_choice and mine.tool_choice != older.tool_choice):
        return MissCause.TOOLS
    if mine.instructions != older.instructions:
        return MissCause.INSTRUCTIONS
    return MissCause.PROVIDER if older.is_continued_by(mine) else MissCause.TRIMMED
