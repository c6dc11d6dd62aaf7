"""Take docs/page.png again, in Chromium: python docs/screenshot.py"""

import shutil
import subprocess
import tempfile
from base64 import b64encode
from pathlib import Path

from sortformer import Diarizer

HERE = Path(__file__).resolve().parent
RECORDING = HERE.parent / "demos" / "meeting.wav"
SIZE = "1180,600"

ACTIONS = """
<script>
const chosen = new DataTransfer();
chosen.items.add(new File([Uint8Array.from(atob("{audio}"), (letter) => letter.charCodeAt(0))], "{name}"));
$("file").files = chosen.files;
takeFile(chosen.files);
choose(steps.state.turns[4]);
pause();
look(8000, 22000);
</script>
"""


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("the picture needs Chromium: install it, as the command chromium or google-chrome")
    audio = b64encode(RECORDING.read_bytes()).decode()
    actions = ACTIONS.replace("{audio}", audio).replace("{name}", RECORDING.name)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(Diarizer.load()(RECORDING).to_html() + actions)
        taken = [f"--window-size={SIZE}", "--virtual-time-budget=5000", f"--screenshot={HERE / 'page.png'}"]
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *taken]
        subprocess.run([browser, *options, page.as_uri()], check=True)


if __name__ == "__main__":
    main()
