"""The page that shows a run: of one that goes on, of one that has ended, of a fetched folder; as a browser sees it."""

import os
import re
import shutil
import subprocess
import unittest

from mesh import Mesh
from patience import wait_until

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def page_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Report(unittest.TestCase):
    def test_a_run_and_its_page(self):
        with Mesh(3) as mesh:
            run = mesh.detach({"steps": 100_000, "evaluate-every": 20})
            mesh.wait_for_step(run, 45)
            live, path = os.path.join(mesh.folder, "live.html"), os.path.join(mesh.folder, "first.html")
            again = mesh.follow("report", run, "-o", live, "--every", "1s")
            wait_until("the page of a run that goes on", lambda: os.path.exists(live))
            self.assertIn('<meta http-equiv="refresh" content="1">', page_of(live))
            self.assertIn("RUNNING", page_of(live))
            mesh.ctl_ok("stop", run)
            self.assertEqual(again.finish().code, 0, "ends with the run")
            self.assertNotIn("refresh", page_of(live))
            self.assertIn("STOPPED", page_of(live))

            self.assertEqual(mesh.ctl_ok("report", run, "-o", path).out, path + "\n")
            mesh.ctl("report", run, "-o", path).refuses(1, f"{path} already exists", "--force")
            mesh.ctl("report", "nothing", "-o", path, "--force").refuses(4, "nothing")
            page, shown = page_of(path), mesh.run(run)
            for text in (run, shown["digest"], shown["data_read"], "Accuracy on the test set", "waits for node-b", "waits for others", "<td>conv1.weight</td>", "Who trained which steps"):
                self.assertIn(text, page)
            folder = mesh.fetch(run)
            fetched = page_of(os.path.join(folder, "report.html"))
            mesh.ctl_ok("report", folder, "-o", path, "--force")
            same = lambda text: re.sub(r"<h[23]>(All m|M)embers.*?</table>", "", text, flags=re.DOTALL)
            self.assertEqual(same(page_of(path)), same(fetched), "of the files alone, but for what only a mesh knows of its members")


class Compared(unittest.TestCase):
    def test_the_curves_of_two_runs(self):
        with Mesh(2) as mesh:
            runs = [mesh.start({"steps": 6, "learning-rate": rate}) for rate in (0.01, 0.02)]
            path = os.path.join(mesh.folder, "compared.html")
            self.assertEqual(mesh.ctl_ok("compare", *runs, "-o", path).out, path + "\n")
            page = page_of(path)
            for text in (*runs, "learning-rate", "Accuracy on the test set", 'class="line2"'):
                self.assertIn(text, page)
            mesh.ctl("compare", *runs, "-o", path).refuses(1, f"{path} already exists", "--force")
            mesh.ctl("compare", *runs, *runs, runs[0], "-o", path, "--force").refuses(2, "at most 4 runs")


@unittest.skipIf(BROWSER is None, "no chromium here (Debian: chromium): the page was not looked at with a browser")
class Browser(unittest.TestCase):
    def test_it_finds_nothing_wrong(self):
        with Mesh(2) as mesh:
            run, path = mesh.start({"steps": 20, "evaluate-every": 5}), os.path.join(mesh.folder, "page.html")
            mesh.ctl_ok("report", run, "-o", path)
            self.look(path, mesh.folder)

    def look(self, path, folder):
        """Nothing is refused or wrong, in light and dark."""
        for name, scheme in (("light", "1"), ("dark", "0")):
            picture = os.path.join(folder, f"{name}.png")
            command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", f"--user-data-dir={folder}/browser",
                       f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1200,2000", f"--screenshot={picture}", f"file://{path}"]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual([line for line in done.stderr.splitlines() if "CONSOLE" in line], [])
            self.assertGreater(os.path.getsize(picture), 10_000)
