"""tests/style/check on small repositories of its own: it passes what is in order, names each planted fault, looks at what
a change touches and at nothing twice, counts lines against their caps, and finds what was retired."""

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

    def rules(self, name, *lines):
        (self.root / "tests" / "style").mkdir(parents=True, exist_ok=True)
        (self.root / "tests" / "style" / name).write_text("".join(line + "\n" for line in lines))

    def test_a_folder_over_its_cap_fails_and_one_below_may_fall(self):
        self.write(good_cpp=GOOD, notes_md="not counted\n")
        (self.root / "kernels" / "script").write_text("#!/bin/sh\ntrue\n")
        self.rules("caps", "# comment", "kernels 8", "schema 0")
        code, said = self.check("--quick")
        self.assertEqual(code, 0, said)
        self.assertIn("== lines: 8 of 8", said)
        self.assertNotIn("clang-tidy", said)
        self.rules("caps", "kernels 7")
        code, said = self.check("--quick")
        self.assertEqual(code, 1, said)
        self.assertIn("kernels has 8 lines, 1 more than its cap", said)
        self.rules("caps", "kernels 10")
        code, said = self.check("--quick")
        self.assertEqual(code, 0, said)
        self.assertIn("its cap can fall by 2", said)

    def test_what_was_retired_is_found_where_it_is_meant(self):
        text = '// A host.\nint host = 1;  // host\nconst char* said = "host // no comment";\n'
        self.write(good_cpp=text)
        (self.root / "README.md").write_text("host\n")
        for kind, numbers in (("comments", ["kernels/good.cpp:1", "kernels/good.cpp:2"]), ("names", ["kernels/good.cpp:2"]),
                              ("all", ["README.md:1", *(f"kernels/good.cpp:{n}" for n in (1, 2, 2, 3))])):  # fmt: skip
            with self.subTest(kind=kind):
                self.rules("retired", "# comment", f"\\bhost\\b\tmachine\t{kind}")
                code, said = self.check("--quick")
                self.assertEqual(code, 1, said)
                self.assertEqual([line.partition(": ")[0] for line in said.splitlines() if "retired:" in line and ":" in line.partition(": ")[0]], numbers)
                self.assertIn("say: machine", said)

    def test_paths_of_a_retired_word(self):
        self.write(good_cpp=GOOD)
        for paths, code in (("kernels/", 1), ("engine/", 0), ("!kernels/", 0), ("kernels/ !kernels/good", 0)):
            with self.subTest(paths=paths):
                self.rules("retired", f"\\bkLimit\\b\tkBound\tnames\t{paths}")
                self.assertEqual(self.check("--quick")[0], code)

    def test_comments_of_each_language(self):
        self.write(good_cpp='/* Of two\n   Of three */\nauto raw = R"(// Of four)";\n', good_capnp="# Of five\n", good_py='"""Of no\n# Of six"""\ntext = "# Of seven"  # Of eight\n')
        self.rules("retired", "^(//|/\\*|#)? ?Of [a-z]\ta sentence\tcomments")
        said = self.check("--quick")[1]
        found = sorted(line.partition(": ")[0] for line in said.splitlines() if ": retired: " in line)
        self.assertEqual(found, ["kernels/good.capnp:1", "kernels/good.cpp:1", "kernels/good.cpp:2", "kernels/good.py:2", "kernels/good.py:3"])

    def test_the_project_own_rules_can_be_read(self):
        sys.path.insert(0, str(ROOT / "tests" / "style"))
        from retired import read_rules
        self.assertGreater(len(read_rules(ROOT / "tests" / "style" / "retired")), 0)


if __name__ == "__main__":
    unittest.main()
