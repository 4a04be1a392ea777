"""The playground as its users meet it, in a headless Chromium.

PAGE is the built page and BLIS_COMMAND the command that it is compared with.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from browser import Browser, main

PAGE = "file://" + os.path.abspath(os.environ["PAGE"])
DONE = """new Promise(done => {
  const look = () => document.body?.dataset.state === 'done' ? done() : setTimeout(look, 10);
  look();
})"""
SMALL = "#requests=500"


def opened(browser: Browser, settings: str) -> None:
    browser.open(PAGE + settings)
    browser.run(DONE)


def text(browser: Browser, side: str, form: str) -> str:
    browser.run(f"side.value = '{side}', side.onchange()")
    browser.run(f"document.getElementById('{form}').click()")
    return browser.run("document.getElementById('text').textContent")


def as_shown(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def in_terminal(browser: Browser, side: str, form: str) -> str:
    """What the shown command, or the first line of the shown scenario file, prints."""
    shown = text(browser, side, form)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(os.environ["BLIS_COMMAND"]), f"{folder}/blis")
        if form == "file":
            with open(f"{folder}/scenario.yaml", "w", encoding="utf-8") as file:
                file.write(shown)
            shown = shown.partition("\n")[0].removeprefix("# ")
        path = {"PATH": f"{folder}:{os.environ['PATH']}"}
        ran = subprocess.run(["bash", "-c", shown], cwd=folder, env=path, capture_output=True,
                             text=True, check=False)
    return ran.stdout or ran.stderr


class Playground(unittest.TestCase):
    def test_a_slider_changes_the_numbers_and_the_address_and_the_address_gives_them_again(self):
        with Browser() as browser:
            opened(browser, SMALL)
            before = text(browser, "b", "output")
            table = browser.run("numbers.textContent")
            browser.run("""(() => {
              const range = document.querySelector('[aria-label=Instances]');
              range.focus(), range.value = 1, range.oninput();
              document.body.dataset.state = 'busy';
            })()""")
            browser.run(DONE)
            after = text(browser, "b", "output")
            self.assertNotEqual(before, after)
            self.assertNotEqual(table, browser.run("numbers.textContent"))
            address = browser.run("location.hash")
            self.assertIn("instances=2", address)
            shown = "headline.textContent + numbers.innerText + settings.innerText"
            table = browser.run(shown)
            opened(browser, address)
            self.assertEqual(after, text(browser, "b", "output"))
            self.assertEqual(table, browser.run(shown))
            self.assertEqual(browser.complaints, [])

    def test_the_terminal_prints_the_same_bytes(self):
        settings = [
            SMALL,
            "#requests=400&workload=independent&rate=90%25&stale=200"
            "&b.strategy=llm-d-1.0[threshold=0.5]",
            "#requests=300&workload=distribution&rate=30&prompt=300&output=90&prefix=64&seed=7"
            "&a.strategy=&a.routing=least-loaded&b.strategy=all-layers",
            "#requests=600&workload=agentic-2048&rate=20&instances=3&kv=2500&b.strategy=precise"
            "&b.scheduler=priority-fcfs&b.priority=slo-class&b.admission=slo-gated[threshold=2]",
        ]
        with Browser() as browser:
            for one in settings:
                opened(browser, one)
                for side in "ab":
                    output = text(browser, side, "output")
                    mean = as_shown(json.loads(output)["cluster"]["ttft_mean_ms"])
                    cell = f"numbers.rows[0].cells[{'ab'.index(side) + 1}].textContent"
                    self.assertEqual(browser.run(cell), mean)
                    for form in ["command", "file"] if side == "b" else ["command"]:
                        printed = in_terminal(browser, side, form)
                        self.assertEqual(printed, output, (one, side, form))
            self.assertEqual(browser.complaints, [])

    def test_mistakes_are_told_as_the_program_words_them(self):
        with Browser() as browser:
            opened(browser, "#requests=many&b.strategy=precice")
            told = browser.run("problems.innerText")
            self.assertIn("workload.num_requests: found `many`", told)
            self.assertIn("unknown strategy `precice`, did you mean `precise`?", told)
            self.assertTrue(browser.run("document.getElementById('results').hidden"))
            browser.run("reset.click()")
            browser.run(DONE)
            self.assertEqual(browser.run("problems.innerText"), "")
            self.assertEqual(browser.complaints, [])

    def test_nothing_is_wider_than_a_phone(self):
        for dark in [False, True]:
            with Browser(width=390, dark=dark) as browser:
                opened(browser, SMALL + "&workload=distribution&b.admission=slo-gated&instances=32")
                browser.run("settings.open = true")
                wide = browser.run("document.documentElement.scrollWidth - innerWidth")
                self.assertLessEqual(wide, 0)

    def test_the_picture_moves(self):
        with Browser() as browser:
            opened(browser, SMALL)
            bars = "Array.from(document.querySelectorAll('#picture-a rect'), it => it.outerHTML)"
            browser.run("moveTo(0)")
            before = browser.run(bars)
            browser.run("document.getElementById('play').click()")
            browser.run("new Promise(done => setInterval(() => now > end / 20 && done(), 10))")
            self.assertEqual(browser.run("document.getElementById('play').textContent"), "Pause")
            self.assertNotEqual(browser.run(bars), before)
            self.assertEqual(browser.complaints, [])

    def test_progress_is_shown_and_twenty_thousand_requests_are_timed(self):
        with Browser() as browser:
            opened(browser, SMALL)
            browser.run("tell = (old => (...all) => (shares.push(all[1]), old(...all)))(tell)"
                        ", shares = []")
            for seed in [1, 2]:
                browser.run(f"state.requests = '20000', state.seed = '{seed}', void update()")
                browser.run(DONE)
                seconds = float(browser.run("document.body.dataset.seconds"))
                print(f"20,000 requests on each side: {seconds:.2f} s", file=sys.stderr)
            shares = browser.run("shares")
            self.assertTrue(any(share and 0 < share < 1 for share in shares), shares)


if __name__ == "__main__":
    main(Playground)
