"""The command-line options of one run."""

from __future__ import annotations

import argparse


class Options(argparse.Namespace):
    """The options of one run; `run` names the command's function as "module:function"."""

    run: str
    print: str | None
    model: str
    api_base: str
    settings: list[str]
    resume_newest: bool
    resume: str | None
    save: bool
    approvals: str | None
    trust: bool
    tools: str | None
    max_iterations: int | None
    output_format: str
    input_format: str
    json_schema: str
    json: bool
    yes: bool
    session: str
    names: list[str]
    all: bool
    words: list[str]
    refresh: bool
    by: str
    limit: int
    file: str
    files: list[str]
    jobs: int
    output: str | None
    max_input_tokens: int | None
    reserved_output_tokens: int | None
    format: str | None
    emit_prompts: bool
    svg: str | None
    request: str
    verify: bool
    tokens: bool
    schema: bool
    provider: str
    server: str
    url: str
    program: list[str]
    env: list[str]
    header: list[str]
    shell: str
    port: int
    login: str | None
    plain: bool
