"""The page that shows a run: of one that goes on, of one that has ended, of a fetched folder; as a browser sees it."""

import os
import re
import shutil
import subprocess
import unittest

from files import write_npy
from mesh import Mesh
from patience import wait_until

FORBIDDEN = 7
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
            for text in (run, shown["digest"], shown["data_read"], "Accuracy on the test set", "waits for node-b", "waits for other members", "<td>conv1.weight</td>", "<h2>Views</h2>"):
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


class Mistakes(unittest.TestCase):
    """What the model of an ended run takes for what, evaluated anew by the node that is asked."""

    def counted(self, page, matrix=True):
        """Samples that are right, and all, of a page's sentence; as many are in its matrix."""
        right, samples = map(int, re.search(r": (\d+) of (\d+) test samples are correct", page).groups())
        for sort, count in (("hit", right), ("miss", samples - right)):
            cells = re.findall(rf'<rect class="{sort}"[^>]*><title>.*? classified as .*?: (\d+) of \d+</title>', page)
            self.assertEqual(sum(map(int, cells)), count)
        return right, samples

    def test_they_equal_the_runs_counts(self):
        with Mesh(2, keys=True, per_node={1: {"weight": 3}}) as mesh:
            mesh.keygen(mesh.key_file, "--operator", "bob", "--read-only")
            bob = os.path.join(mesh.folder, "bob.key")
            wait_until("the nodes have read the operator", lambda: all("operators=1" in node.log_text() for node in mesh.nodes))
            run, path = mesh.start({"steps": 12, "evaluate-every": 6, "data-test": 700}), os.path.join(mesh.folder, "page.html")
            pages = []
            for node in range(2):
                self.assertEqual(mesh.ctl_ok("report", run, "-o", path, "--force", "--mistakes", node=node).out, path + "\n")
                pages.append(re.search("<h2>Confusion matrix.*?(?=<h2>Where a step)", page_of(path), re.DOTALL)[0])
            self.assertEqual(pages[0], pages[1].replace("node-b evaluated", "node-a evaluated"))
            right, samples = self.counted(pages[0])
            evaluation = mesh.run(run)["evaluation"]
            self.assertEqual((right / samples, samples, evaluation["step"]), (evaluation["accuracy"], 700, 12))
            self.assertNotIn("The run's own evaluation had", pages[0])
            self.assertEqual(pages[0].count("data:image/png;base64,"), 24)
            self.assertRegex(pages[0], r"<span>predicted \d \(\d+ %\), actual \d</span>")

            mesh.ctl("--key", bob, "report", run, "-o", path, "--force", "--mistakes").ends(FORBIDDEN, "operator bob may only read")
            mesh.ctl_ok("--key", bob, "report", run, "-o", path, "--force")
            self.assertNotIn("Confusion matrix", page_of(path))
            mesh.ctl("report", run, "-o", path, "--force", "--mistakes", "--every", "10s").refuses(2, "--mistakes", "--every")
            mesh.ctl("report", mesh.fetch(run), "-o", path, "--force", "--mistakes").refuses(2, "give the run's id")

            # Not beside a run; after it, as before.
            second = mesh.detach({"steps": 100_000})
            mesh.wait_for_step(second, 3)
            mesh.ctl("report", second, "-o", path, "--force", "--mistakes").refuses(1, f"run {second} is RUNNING", "try again")
            mesh.ctl("report", run, "-o", path, "--force", "--mistakes").refuses(1, f"run {second} is active; ask again when that has ended")
            mesh.ctl_ok("stop", second)
            mesh.wait_ended(second)
            mesh.ctl_ok("report", run, "-o", path, "--force", "--mistakes")
            self.assertIn(pages[0], page_of(path))

    def test_a_start_ends_an_evaluation(self):
        with Mesh(1) as mesh:
            run, path = mesh.start({"steps": 2, "evaluate-every": 0, "data-test": 60_000}), os.path.join(mesh.folder, "page.html")
            asks = mesh.follow("report", run, "-o", path, "--mistakes")
            wait_until("it evaluates", lambda: "event=evaluating" in mesh[0].log_text())
            mesh.ctl("report", run, "-o", path, "--mistakes").refuses(1, "is being evaluated", "ask again")
            second = mesh.start({"steps": 2})
            asks.finish().ends(1, f"run {second} begins; try again when it has ended")
            self.assertFalse(os.path.exists(path))
            self.assertEqual(mesh.status()["nodes"][0]["problem"], "", "nothing is left behind")

    def test_of_other_data_and_of_features(self):
        with Mesh(2, per_node={1: {"data-dir": "/nowhere"}}) as mesh:
            folder = os.path.join(mesh.folder, "arrays")
            os.makedirs(folder)
            write_npy(os.path.join(folder, "x.npy"), "f4", (60, 2), [i * 7 % 5 for i in range(120)])
            write_npy(os.path.join(folder, "y.npy"), "i8", (60,), [i % 3 for i in range(60)])
            job = {"data": "npy", "model": "mlp", "data-train": None, "data-test": None, "data-dir": folder, "test-share": 0.5, "steps": 4, "evaluate-every": 4}
            run, path = mesh.start(job), os.path.join(mesh.folder, "page.html")
            mesh.ctl_ok("report", run, "-o", path, "--mistakes")
            right, samples = self.counted(page_of(path))
            self.assertEqual(right / samples, mesh.run(run)["evaluation"]["accuracy"])
            self.assertIn("These samples are not pictures", page_of(path))

            write_npy(os.path.join(folder, "y.npy"), "i8", (60,), [i % 3 for i in range(59)] + [0])
            mesh.ctl("report", run, "-o", path, "--force", "--mistakes").refuses(1, "node-a: the data are not those of the run", "put back the files")
            os.unlink(os.path.join(folder, "y.npy"))
            mesh.ctl("report", run, "-o", path, "--force", "--mistakes").refuses(2, "node-a: ", "no labels")
            with open(mesh[1].run_file(run, "model.safetensors"), "ab") as file:
                file.write(b"x")
            mesh.ctl("report", run, "-o", path, "--force", "--mistakes", node=1).refuses(1, "model.safetensors is not what was written", "ask another member")
            os.unlink(mesh[1].run_file(run, "model.safetensors"))
            mesh.ctl("report", run, "-o", path, "--force", "--mistakes", node=1).refuses(4, "node-b: ", "model.safetensors")


@unittest.skipIf(BROWSER is None, "no chromium here (Debian: chromium): the page was not looked at with a browser")
class Browser(unittest.TestCase):
    def test_it_finds_nothing_wrong(self):
        with Mesh(2) as mesh:
            run, path = mesh.start({"steps": 20, "evaluate-every": 5}), os.path.join(mesh.folder, "page.html")
            mesh.ctl_ok("report", run, "-o", path, "--mistakes")
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
