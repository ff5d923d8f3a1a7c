"""What is found in a folder that commands may not change."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.tools.sandbox.bubblewrap import arguments
from rolling_chat.tools.sandbox.walls import plan_walls


def test_a_folder_full_of_repositories_leaves_room_for_the_arguments(tmp_path: Path) -> None:
    """A hostile one must not make every command fail, and so the question come to run it without."""
    for number in range(1_200):
        git = tmp_path / f"r{number}" / ".git"
        git.mkdir(parents=True)
        (git / "config").touch()
    walls = plan_walls(tmp_path, tmp_path, {}, (), has_network=False)
    assert len(arguments(walls, tmp_path / "empty")) < 8_000
    assert tmp_path / "r0" / ".git" / "config" in walls.read_only
