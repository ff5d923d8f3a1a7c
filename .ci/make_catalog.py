"""Make the model catalog from the table in the newest litellm wheel, of which nothing is imported.

python .ci/make_catalog.py [WHEEL]
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from rolling_chat.settings.catalog_files import read_catalog, write_catalog  # noqa: E402

TABLE = "litellm/model_prices_and_context_window_backup.json"


def main() -> None:
    """Write `rolling_chat/settings/models.json`."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(sys.argv[1]) if len(sys.argv) > 1 else download(folder)
        data = zipfile.ZipFile(wheel).read(TABLE)
        version = wheel.name.split("-")[1]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    catalog = read_catalog(data, source=f"litellm {version}", date=today)
    path = ROOT / "rolling_chat" / "settings" / "models.json"
    write_catalog(path, catalog)
    path.chmod(0o644)
    print(catalog.described)


def download(folder: str) -> Path:
    """Download the newest wheel, without what it needs."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "-d", folder, "litellm"], check=True)
    return next(Path(folder).glob("*.whl"))


if __name__ == "__main__":
    main()
