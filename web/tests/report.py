"""The pages of a study and of a run as their readers meet them, in a headless Chromium.

BLIS_COMMAND is the command that writes them.
"""

import os
import subprocess
import tempfile
import unittest

from browser import Browser, main

STUDY = """
question: which router?
base:
  cluster: {instances: 2}
  engine: {total_kv_blocks: 3000}
  workload: {preset: multi-turn-4x512, rate: 12, num_requests: 200}
arms:
  - {name: round-robin, set: {routing: round-robin}}
  - {name: least-loaded, set: {routing: least-loaded}}
  - {name: by class, set: {scheduler: priority-fcfs, priority: slo-class}}
references: false
workloads: [{name: calm}, {name: busy, set: {workload: {rate: 16}}}]
metrics: [ttft_p99, e2e_mean]
seeds: 2
max_seeds: 2
warmup: 0s
length: written
"""
SWEPT = STUDY.replace("workloads:", "sweep: {engine.total_kv_blocks: [3000, 2000]}\nworkloads:")
RUN = ["run", "--workload", "chatbot", "--rate", "60", "--num-requests", "400",
       "--num-instances", "2"]
CHOOSE = """(label, value) => {
  const menu = [...document.querySelectorAll('#explore label')]
    .find(it => it.firstChild.data === label).querySelector('select');
  menu.value = value, menu.onchange();
}"""
TABLE = "Array.from(document.querySelectorAll('#explore tr'), row => row.innerText)"
MARKS = "document.querySelectorAll('#explore [aria-label=dot] circle').length"


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        for name, text in [("study", STUDY), ("swept", SWEPT)]:
            with open(f"{cls.folder.name}/{name}.yaml", "w", encoding="utf-8") as file:
                file.write(text)
            cls.blis("study", f"{name}.yaml", "--quiet", "--no-ledger", "--report", f"{name}.html")
        cls.blis(*RUN, "--quiet", "--report", "run.html")

    @classmethod
    def blis(cls, *words):
        command = [os.path.abspath(os.environ["BLIS_COMMAND"]), *words]
        subprocess.run(command, cwd=cls.folder.name, check=True, capture_output=True)

    def opened(self, browser, name):
        browser.open(f"file://{self.folder.name}/{name}.html")
        browser.run("new Promise(done => document.readyState === 'complete' ? done() "
                    ": addEventListener('load', done))")

    def test_a_metric_a_class_and_a_workload_are_chosen(self):
        with Browser() as browser:
            self.opened(browser, "study")
            before = browser.run(TABLE)
            self.assertEqual(len(before), 1 + 2 * 3)
            self.assertIn("ttft_p99, ms", before[0])
            browser.run(f"({CHOOSE})('Metric', 'hit_rate')")
            self.assertIn("hit_rate, %", browser.run(TABLE)[0])
            browser.run(f"({CHOOSE})('Metric', 'ttft_p99')")
            self.assertEqual(browser.run(TABLE), before)
            browser.run(f"({CHOOSE})('Class', 'critical')")
            self.assertNotEqual(browser.run(TABLE), before)
            browser.run(f"({CHOOSE})('Workload', 1)")
            self.assertEqual(len(browser.run(TABLE)), 1 + 3)
            browser.run(f"({CHOOSE})('Compared with', 2)")
            self.assertIn("against by class", browser.run(TABLE)[0])
            self.assertEqual(browser.complaints, [])

    def test_the_explorer_has_the_means_and_intervals_of_the_findings(self):
        with Browser() as browser:
            self.opened(browser, "study")
            found = "JSON.parse(findings.textContent).cells.map(it => it.e2e_mean)"
            browser.run(f"({CHOOSE})('Metric', 'e2e_mean')")
            for row, cell in zip(browser.run(TABLE)[1:], browser.run(found), strict=True):
                shown = row.replace(",", "").split("\t")
                low, high = shown[3].split(" to ")
                for text, name in [(shown[2], "mean"), (low, "low"), (high, "high")]:
                    self.assertAlmostEqual(float(text) / cell[name], 1, delta=6e-4)

    def test_arms_are_toggled_and_rows_sorted_with_the_keyboard(self):
        with Browser() as browser:
            self.opened(browser, "study")
            marks = browser.run(MARKS)
            browser.run("document.querySelector('.chips button').focus()")
            browser.press(" ")
            self.assertEqual(browser.run("document.activeElement.ariaPressed"), "false")
            self.assertEqual(browser.run(MARKS), marks * 2 // 3)
            self.assertNotIn("round-robin", [row.split("\t")[1] for row in browser.run(TABLE)])
            mean = "Array.from(document.querySelectorAll('#explore td:nth-child(3)'), " \
                   "it => +it.textContent.replaceAll(',', ''))"
            browser.run("document.querySelectorAll('#explore th button')[2].focus()")
            for descending in [False, True]:
                browser.press("Enter")
                values = browser.run(mean)
                self.assertEqual(values, sorted(values, reverse=descending))
            self.assertEqual(browser.complaints, [])

    def test_percentiles_show_how_values_are_spread(self):
        chip = "[...document.querySelectorAll('.chips button')].find(it => it.innerText.includes('p90'))"
        found = "JSON.parse(runs.textContent).metrics.map(it => it.name)"
        with Browser() as browser:
            self.opened(browser, "study")
            self.assertLessEqual({"ttft_p50", "ttft_p90", "ttft_p99"}, set(browser.run(found)))
            table = browser.run(TABLE)
            browser.run(f"{chip}.click()")
            self.assertIn("ttft: p50, p90 and p99, ms", browser.run("explore.innerText + "
                          "[...document.querySelectorAll('#explore text')].map(it => it.textContent)"))
            self.assertEqual(browser.run(TABLE), table)
            browser.run(f"({CHOOSE})('Metric', 'hit_rate')")
            self.assertTrue(browser.run(f"{chip}.disabled"))
            self.assertEqual(browser.complaints, [])

    def test_the_course_of_runs_is_shown_over_time(self):
        lines = "Array.from(document.querySelectorAll('#explore [aria-label=line] path'), " \
                "it => it.getAttribute('d').split(/[LM]/).length - 1)"
        series = "JSON.parse(runs.textContent).over_time"
        with Browser() as browser:
            self.opened(browser, "study")
            table = browser.run(TABLE)
            self.assertEqual(browser.run(f"{series}.seconds.length"), 2 * 3)
            for name in ["TTFT mean, ms", "requests waiting", "requests running"]:
                browser.run(f"({CHOOSE})('Over time', '{name}')")
                drawn = browser.run(lines)
                self.assertEqual(len(drawn), 2 * 3, name)
                self.assertGreater(min(drawn), 30, name)
                self.assertIn(f"The chart shows {name}", browser.run("explore.innerText"))
            self.assertEqual(browser.run(TABLE), table)
            browser.run(f"({CHOOSE})('Over time', '')")
            self.assertEqual(browser.run(lines), [])
            self.assertEqual(browser.complaints, [])

    def test_a_sweep_has_a_line_for_each_arm(self):
        with Browser() as browser:
            self.opened(browser, "swept")
            lines = "document.querySelectorAll('#explore [aria-label=line] path').length"
            self.assertEqual(browser.run(lines), 2 * 3)
            browser.run(f"({CHOOSE})('total_kv_blocks', 0)")
            self.assertEqual(browser.run(lines), 0)
            self.assertEqual(browser.complaints, [])

    def test_a_request_is_opened_from_the_list_and_from_its_marks(self):
        shown = "document.querySelector('details[open]')?.innerText ?? ''"
        places = ["td a", "[aria-label=text] a", "[aria-label=bar] a", "[aria-label=dot] a"]
        with Browser() as browser:
            for place in places:
                self.opened(browser, "run")
                self.assertEqual(browser.run(shown), "")
                browser.run(f"document.querySelector('{place}').focus()")
                browser.press("Enter")
                details = browser.run(shown)
                self.assertRegex(details, r"^Request \w+", place)
                for text in ["waiting", "prefill", "decode", "of TTFT", "Alone on an idle",
                             "The oracle, which knows"]:
                    self.assertIn(text, details)
            self.assertEqual(browser.complaints, [])

    def test_dragging_over_time_zooms_all_charts_of_it(self):
        zoomed = "document.querySelectorAll('figcaption button').length"
        with Browser() as browser:
            self.opened(browser, "run")
            browser.run("document.querySelector('figure').scrollIntoView()")
            box = "document.querySelector('.panel svg').getBoundingClientRect()"
            x, y = browser.run(f"(({{x, y}}) => [x + 200, y + 100])({box})")
            for kind, to in [("Pressed", x), ("Moved", x + 100), ("Released", x + 100)]:
                browser.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=to, y=y,
                             button="left", clickCount=1)
            self.assertEqual(browser.run(zoomed), 3)
            browser.run("document.querySelector('figcaption button').click()")
            self.assertEqual(browser.run(zoomed), 0)
            self.assertEqual(browser.complaints, [])

    def test_nothing_is_wider_than_a_phone(self):
        for dark in [False, True]:
            with Browser(width=390, dark=dark) as browser:
                for name in ["study", "swept", "run"]:
                    self.opened(browser, name)
                    browser.run("document.querySelectorAll('details').forEach(it => it.open = true)")
                    wide = browser.run("document.documentElement.scrollWidth - innerWidth")
                    self.assertLessEqual(wide, 0, name)
                self.assertEqual(browser.complaints, [])


if __name__ == "__main__":
    main(Reports)
