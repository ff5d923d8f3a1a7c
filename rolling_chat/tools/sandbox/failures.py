"""Detect from the output of a failed command whether the sandbox may be the reason."""

from __future__ import annotations

import re

_READ = 20_000  # characters at the end of the output

_FILES = re.compile(
    r"""
      read-only\ file\ system | \bEROFS\b | \berrno\ 30\b
    | operation\ not\ permitted | \bEPERM\b
    | permission\ denied.{0,200}\.(?:ssh|aws|gnupg|kube|docker|azure|config|claude|codex|gemini|local)\b
    | \.(?:ssh|aws|gnupg|kube|docker|azure|config|claude|codex|gemini|local)\b.{0,200}permission\ denied
    | \.git/config.{0,80}device\ or\ resource\ busy | could\ not\ lock\ config\ file
    | \.git:\ device\ or\ resource\ busy
    | (?:AGENTS\.md|CLAUDE\.md).{0,40}is\ a\ directory
    | no\ new\ privileges
    | ^bwrap:\  | ^sandbox-exec:\
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NETWORK = re.compile(
    r"""
      network\ is\ unreachable | \bENETUNREACH\b | network\ is\ down
    | temporary\ failure\ in\ name\ resolution | name\ or\ service\ not\ known | nodename\ nor\ servname
    | could\ ?n[o']t\ resolve | failed\ to\ resolve | failed\ to\ lookup\ address | unable\ to\ resolve
    | no\ such\ host | \bgetaddrinfo\b | \bEAI_AGAIN\b | \bENOTFOUND\b | NameResolutionError
    | dial\ tcp:\ lookup | bad\ address | unknown\ host
    | connection\ refused | \bECONNREFUSED\b | failed\ to\ connect\ to | could\ ?n[o']t\ connect\ to
    """,
    re.IGNORECASE | re.VERBOSE,
)


def sign_of_sandbox(output: str, *, has_network: bool) -> str:
    """Return the last line of a failed command's output that suggests the sandbox stopped it; "" if none."""
    patterns = (_FILES,) if has_network else (_FILES, _NETWORK)
    lines = output[-_READ:].splitlines()
    return next((line for line in reversed(lines) if any(one.search(line) for one in patterns)), "")
