"""tests/style/check on small repositories of its own: it passes what is in order, names each planted fault, looks at what
a change touches and at nothing twice."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = "namespace tg {\n\nconstexpr int kLimit = 3;\nint limit() { return kLimit; }\n\n}  // namespace tg\n"
BAD_NAME = GOOD.replace("kLimit", "most_limit")
BAD_FORMAT = GOOD.replace("{ return", "{   return")


class Check(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)
        for rules in (".clang-format", ".clang-tidy"):
            shutil.copy(ROOT / rules, self.root)

    def write(self, **files):
        """NAME_h or NAME_cpp in kernels/, and compile commands for all sources there."""
        (self.root / "kernels").mkdir(exist_ok=True)
        for name, text in files.items():
            (self.root / "kernels" / name.replace("_", ".")).write_text(text)
        build = self.root / "build" / "release"
        build.mkdir(parents=True, exist_ok=True)
        sources = sorted(str(path) for path in (self.root / "kernels").glob("*.cpp"))
        commands = [{"directory": str(build), "command": f"c++ -std=c++20 -I{self.root} -c {source}", "file": source} for source in sources]
        (build / "compile_commands.json").write_text(json.dumps(commands))

    def git(self, *arguments):
        who = ["-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run(["git", "-C", self.root, *who, *arguments], check=True, capture_output=True)

    def check(self, *arguments):
        done = subprocess.run([sys.executable, ROOT / "tests" / "style" / "check", "--root", self.root, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_good_files_pass_and_are_not_looked_at_twice(self):
        self.write(good_cpp=GOOD)
        code, said = self.check()
        self.assertEqual(code, 0, said)
        self.assertIn("1 of 1 sources (no git: all), 1 of them not seen before", said)
        code, said = self.check()
        self.assertEqual(code, 0, said)
        self.assertIn("0 of them not seen before", said)

    def test_a_misformatted_file_fails(self):
        self.write(good_cpp=GOOD, planted_h=BAD_FORMAT)
        code, said = self.check()
        self.assertEqual(code, 1, said)
        self.assertIn("kernels/planted.h:4", said)

    def test_a_badly_named_constant_fails_until_it_is_mended(self):
        self.write(planted_cpp=BAD_NAME)
        for _ in range(2):  # a failure is looked at again
            code, said = self.check()
            self.assertEqual(code, 1, said)
            self.assertIn("readability-identifier-naming", said)
            self.assertIn("kernels/planted.cpp:3", said)
        self.write(planted_cpp=GOOD)
        self.assertEqual(self.check()[0], 0)

    def test_a_change_counts_for_the_sources_that_include_it(self):
        header = "inline constexpr int kNumber = 1;\n"
        self.write(old_cpp=BAD_NAME, user_cpp='#include "kernels/between.h"\n', between_h='#include "kernels/number.h"\n', number_h=header)
        (self.root / ".gitignore").write_text("build/\n")
        self.git("init", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-m", "first")
        code, said = self.check()
        self.assertIn("2 of 2 sources (no commit before: all)", said)
        self.assertEqual(code, 1, said)
        self.write(number_h=header.replace("kNumber", "kOther"))
        self.git("commit", "-am", "second")
        code, said = self.check()
        self.assertIn("1 of 2 sources (since the commit before)", said)
        self.assertEqual(code, 0, said)
        self.git("checkout", "-b", "branch")
        self.write(number_h=header.replace("kNumber", "number"))
        self.git("commit", "-am", "third")
        code, said = self.check()
        self.assertIn("1 of 2 sources (since main)", said)
        self.assertIn("kernels/number.h:1", said)
        self.assertEqual(code, 1, said)
        self.write(number_h=header)
        code, said = self.check("--all")
        self.assertIn("kernels/old.cpp:3", said)
        self.assertNotIn("kernels/number.h", said)
        self.assertEqual(code, 1, said)


if __name__ == "__main__":
    unittest.main()
