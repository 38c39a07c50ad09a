#!/usr/bin/env python3
"""The build id (cmake/TgdBuildId.cmake): the same in a clone and in an exported tree, another one as soon as a byte, a name
or the number of the product's files changes, and none of tests, deploy and pages in it."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ("CMakeLists.txt", "cmake", "ctl", "daemon", "engine", "kernels", "schema")


def build_id(tree):
    done = subprocess.run(["cmake", "-P", tree / "cmake" / "TgdBuildId.cmake"], cwd="/", capture_output=True, text=True, check=True)
    return done.stdout.strip()


class BuildId(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tgd-build-id-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def copy(self):
        """The tree as it lies here, without what git knows."""
        tree = self.folder / "copy"
        for name in (*PRODUCT, "deploy", "tests/architecture"):
            if (ROOT / name).is_file():
                tree.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, tree / name)
            else:
                shutil.copytree(ROOT / name, tree / name)
        return tree

    def test_is_version_and_twelve_digits(self):
        version = re.search(r"^project\(tgd VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertRegex(build_id(ROOT), rf"^{re.escape(version)}\+[0-9a-f]{{12}}$")

    def test_a_copy_elsewhere_has_the_same(self):
        self.assertEqual(build_id(self.copy()), build_id(ROOT))

    def test_a_clone_and_an_exported_tree_have_the_same(self):
        if not (ROOT / ".git").exists():
            self.skipTest("no git: this is an exported tree itself")
        clone, exported = self.folder / "clone", self.folder / "exported"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        exported.mkdir()
        archive = subprocess.Popen(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", exported], stdin=archive.stdout, check=True)
        self.assertEqual(archive.wait(), 0)
        self.assertFalse((exported / ".git").exists())
        self.assertEqual(build_id(clone), build_id(exported))

    def test_every_byte_and_name_of_the_product_counts(self):
        tree = self.copy()
        ids = [build_id(tree)]
        for name in ("CMakeLists.txt", "cmake/TgdFlags.cmake", "ctl/main.cpp", "ctl/fetch/predict.py", "daemon/core.cmake", "engine/engine.h", "kernels/kernels.h", "schema/frame.capnp", "schema/version.cpp.in"):
            file = tree / name
            content = bytearray(file.read_bytes())
            content[-1] ^= 1
            file.write_bytes(content)
            ids.append(build_id(tree))
        (tree / "daemon/main.cpp").rename(tree / "daemon/other.cpp")
        ids.append(build_id(tree))
        (tree / "daemon/other.cpp").unlink()
        ids.append(build_id(tree))
        self.assertEqual(len(ids), len(set(ids)), ids)

    def test_nothing_else_counts(self):
        tree = self.copy()
        before = build_id(tree)
        for name in ("tests/architecture/build_id.py", "deploy/tgd.conf", "daemon/README.md", "daemon/.main.cpp.swp", "daemon/notes.txt"):
            with open(tree / name, "a") as file:
                file.write("# another line\n")
        self.assertEqual(build_id(tree), before)


if __name__ == "__main__":
    sys.exit(unittest.main())
