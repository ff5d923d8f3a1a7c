"""Signatures are found in every language, by parsers and by patterns alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rolling_chat.tools import outline as tool
from rolling_chat.tools import outline_process
from rolling_chat.tools.outline_process import outline
from tests.support.patience import PATIENCE_SECONDS

SOURCES = {
    "py": (
        "class A(B, k=M):\n  async def m(self, a=3) -> list[int]:\n    def h(): 1\nif x:\n def g(): 1",
        "1 class A(B, k=M)|2  async def m(self, a=3) -> list[int]|5 def g()",
    ),
    "js": (
        "class A extends B {\n  async m(a) {\n   if (a) {\n   }\n  }\n}\nfunction f() {\n}\nq(function() {})",
        "1 class A extends B|2  async m(a)|7 function f()",
    ),
    "ts": (
        "abstract class C<T> {\n  private m<T>(x: T): Promise<void> {\n  }\n}\ninterface I {\n}\n",
        "1 abstract class C<T>|2  private m<T>(x: T): Promise<void>|5 interface I",
    ),
    "go": (
        "package a\ntype T struct {\n a int\n}\nfunc (t *T) F(a int) (int, error) {\n}\n",
        "2 type T struct|5 func (t *T) F(a int) (int, error)",
    ),
    "rs": (
        "impl<T> Tr for S<T> {\n    pub async fn f(&self, x: u32) -> Result<()> {\n    }\n}\nmod m {\n}\n",
        "1 impl<T> Tr for S<T>|2  pub async fn f(&self, x: u32) -> Result<()>|5 mod m",
    ),
    "java": (
        "public class A extends B {\n  static <T> List<T> f(T a) throws E {\n    if (a) {\n    }\n  }\n}\n",
        "1 public class A extends B|2  static <T> List<T> f(T a) throws E",
    ),
    "c": ("struct s {\n int a;\n};\nint main(void) {\n  f(x);\n}\n", "1 struct s|4 int main(void)"),
    "cpp": (
        "namespace n {\n  class A : public B {\n  };\n}\nint n::A::q(int a) {\n}\n",
        "1 namespace n|2  class A : public B|5 int n::A::q(int a)",
    ),
    "rb": (
        "module M\n  class A < B\n    def f(x)\n    end\n  end\nend\n",
        "1 module M|2  class A < B|3   def f(x)",
    ),
    "php": (
        "<?php\nclass A extends B {\n  public function f($a): int {\n  }\n}\n",
        "2 class A extends B|3  public function f($a): int",
    ),
    "cs": (
        "public class A : B {\n  public async Task<int> F(int a) {\n  }\n}\n",
        "1 public class A : B|2  public async Task<int> F(int a)",
    ),
    "sh": ("f() {\n  echo\n}\nfunction g {\n}\n", "1 f()|4 function g"),
}  # fmt: skip
OTHERS = {
    "md": ("# A\n```\n# no\n```\n## B\n", "1 # A|5  ## B"),
    "kt": (
        "class B : C() {\n  override fun f(a: Int): String {\n  }\n}\n",
        "1 class B : C()|2  override fun f(a: Int): String",
    ),
    "toml": ("[a]\nb = 1\n[c.d]\n", "1 [a]|3 [c.d]"),
}  # fmt: skip


def found(suffix: str, text: str) -> str:
    return "|".join(f"{line} {' ' * depth}{said}" for line, depth, said in outline(suffix, text))


@pytest.mark.parametrize("suffix", [*SOURCES, *OTHERS])
def test_signatures_are_found_by_patterns(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline_process, "_parser", lambda _: None)
    text, expected = {**SOURCES, **OTHERS}[suffix]
    assert found(suffix, text) == expected


@pytest.mark.parametrize("suffix", [suffix for suffix in SOURCES if suffix != "py"])
def test_the_same_signatures_are_found_by_parsers(suffix: str) -> None:
    pytest.importorskip("tree_sitter", reason="the extra `outline` is not installed")
    assert outline_process._parser(outline_process._GRAMMARS[suffix]) is not None
    text, expected = SOURCES[suffix]
    assert found(suffix, text) == expected


def test_python_that_does_not_parse_is_read_by_patterns() -> None:
    assert found("py", "class A:\n    def f(self):\n        print 'x'\n") == "1 class A|2  def f(self)"
    assert found("py", "def f():\n    x = '\0'\n") == "1 def f()"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("py", "x = " + "(" * 100_000),
        ("py", "x = " + "-" * 100_000 + "1"),
        ("py", "x = a" + ".b" * 50_000),
        ("py", "x = " + "+".join(["1"] * 50_000)),
        ("py", "def f(" + "a, " * 50_000 + "): pass"),
        ("js", "x" * 1_000_000),
        ("js", "f(" * 100_000),
        ("js", "{" * 100_000 + "function f() {}"),
        ("java", "public " * 100_000),
        ("java", "a " * 40 + "(" * 100 + "\n"),
        ("c", "int *" * 100_000),
        ("c", "a b " * 70 + "(\n"),
        ("md", "#" * 500_000),
        ("rs", "const " * 50 + "\n" * 100_000),
    ],
    ids=lambda part: part[:8],
)
def test_a_hostile_source_costs_neither_much_time_nor_the_program(
    suffix: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "sources"
    file.write_text(json.dumps([[suffix, text], ["md", "# end"]]))
    command = [sys.executable, "-I", "-W", "ignore", outline_process.__file__, str(file)]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    if not done.returncode:
        entries = json.loads(done.stdout)
        assert entries[1] == [[1, 0, "# end"]]
        assert all(len(said) <= 160 for _, _, said in entries[0])


def test_the_tool_knows_the_languages_of_the_process() -> None:
    assert outline_process._PATTERNS.keys() == tool.SUFFIXES
    assert outline_process._GRAMMARS.keys() < tool.SUFFIXES
