"""The wheel, the source distribution, and what the README shows."""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from tests.real import RealCase

HERE = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.search('^version = "(.*)"', (HERE / "pyproject.toml").read_text(), re.M)[1]
MODULES = {f"regent_client/{path.name}" for path in (HERE / "regent_client").glob("*.py")} | {"regent_client/py.typed"}
LEAD_ONCE = """
import os, regent_client
with regent_client.Client(os.environ["SERVER"]) as client, client.lead("reports") as lease:
    print(regent_client.__file__, lease.token)
"""


def run(*command, **environment):
    done = subprocess.run(command, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"{command} exits with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Package(RealCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def build(self, hook, into):
        (self.folder / into).mkdir()
        name = run(sys.executable, "-c", f"import build_backend; print(build_backend.{hook}(r'{self.folder / into}'))", PYTHONPATH=str(HERE)).strip()
        return self.folder / into / name

    def test_the_wheel_has_the_package_and_nothing_else(self):
        first, second = self.build("build_wheel", "a"), self.build("build_wheel", "b")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertEqual(first.name, f"regent_client-{VERSION}-py3-none-any.whl")
        info = f"regent_client-{VERSION}.dist-info"
        with zipfile.ZipFile(first) as wheel:
            self.assertEqual(set(wheel.namelist()), MODULES | {f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"})
            for line in wheel.read(f"{info}/RECORD").decode().splitlines()[:-1]:
                name, sum, size = line.split(",")
                data = wheel.read(name)
                self.assertEqual((sum, size), ("sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="), str(len(data))))
            metadata = wheel.read(f"{info}/METADATA").decode()
        self.assertIn(f"Name: regent-client\nVersion: {VERSION}\n", metadata)
        self.assertIn("Requires-Python: >=3.10\n", metadata)
        self.assertEqual(re.findall("Requires-Dist: (.*)", metadata), ['cryptography>=42; extra == "statements"'])

    def test_the_source_distribution_has_what_builds_the_wheel(self):
        first, second = self.build("build_sdist", "a"), self.build("build_sdist", "b")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        top = f"regent_client-{VERSION}"
        with tarfile.open(first) as archive:
            names = {name.removeprefix(top + "/") for name in archive.getnames()}
        self.assertEqual(names, MODULES | {"PKG-INFO", "README.md", "build_backend.py", "pyproject.toml"})

    def test_it_is_installed_offline_and_leads(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
            self.skipTest("SKIPPED, NOT PROVED: this Python has no pip")
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")
        out, env, source = self.folder / "out", self.folder / "env", self.folder / "source"
        shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))  # pip may write beside it
        run(*pip, "wheel", "--no-index", "--no-deps", "--wheel-dir", str(out), str(source))
        wheel, = out.iterdir()
        run(*pip, "wheel", "--no-index", "--no-deps", "--wheel-dir", str(self.folder / "again"), str(self.build("build_sdist", "sdist")))
        again, = (self.folder / "again").iterdir()
        self.assertEqual(wheel.read_bytes(), again.read_bytes())
        run(sys.executable, "-m", "venv", "--without-pip", str(env))
        python = str(env / "bin" / "python")
        site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        run(*pip, "install", "--no-index", "--no-deps", "--target", site, str(wheel))
        self.assertEqual(run(python, "-I", "-c", LEAD_ONCE, SERVER=self.regent.url).split(), [f"{site}/regent_client/__init__.py", "1"])


class Readme(RealCase):
    PRINTED = (
        "page 1, written with token 1\npage 2, written with token 1\npage 3, written with token 1\n",
        "page 1, written with token 2\npage 2, written with token 2\npage 3, written with token 2\n",
        "TOKEN_STALE: token 1 of election 'billing' is stale: 2 has written; unless a renewal brings a newer token, stop acting as leader\n",
        "[('ann', 'leader'), ('bob', 'follower')]\nbob follows ann\n1 acquired ann\n2 released \n",
        "ann has left {'up_to': 3}\npage 1 {'page': 1}\npage 2 {'page': 2}\npage 3 {'page': 3}\n",
        "send it\nsent before: {'number': 17}\n",
        "accepted by ann - from noon on\n",
    )

    def test_its_programs_run_and_print(self):
        programs = re.findall(r"^```python\n(.*?)^```", (HERE / "README.md").read_text(encoding="utf-8"), re.M | re.S)
        self.assertEqual(len(programs), len(self.PRINTED))
        for program, want in zip(programs, self.PRINTED):
            program = program.replace("http://127.0.0.1:8080", self.regent.url)
            got = run(sys.executable, "-W", "error", "-c", program, PYTHONPATH=str(HERE))
            with self.subTest(program):
                self.assertEqual(got, want)
