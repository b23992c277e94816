"""Builds the wheel and the source distribution (PEP 517) with nothing but the standard library, so that it works offline.

The same sources give the same bytes."""

import base64
import gzip
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).parent
PACKAGE = "regent_client"
TOP = ("README.md", "build_backend.py", "pyproject.toml")  # of the source distribution, beside the package
EPOCH = (1980, 1, 1, 0, 0, 0)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = f"{PACKAGE}-{version()}.dist-info"
    files = [(name, (HERE / name).read_bytes()) for name in sources()]
    files += [
        (f"{info}/METADATA", metadata()),
        (f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: regent\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
    ]
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files) + f"{info}/RECORD,,\n"
    name = f"{PACKAGE}-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in [*files, (f"{info}/RECORD", record.encode())]:
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    top = f"{PACKAGE}-{version()}"
    files = [(name, (HERE / name).read_bytes()) for name in (*TOP, *sources())]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in [*files, ("PKG-INFO", metadata())]:
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    name = f"{top}.tar.gz"
    (pathlib.Path(sdist_directory) / name).write_bytes(gzip.compress(out.getvalue(), mtime=0))
    return name


def sources():
    return sorted(p.relative_to(HERE).as_posix() for p in (HERE / PACKAGE).rglob("*") if p.suffix == ".py" or p.name == "py.typed")


def version():
    return setting("version")


def setting(name):
    """A text of pyproject.toml, which Python 3.10 has no module for."""
    return re.search(rf'^{name} = "([^"]*)"$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.M)[1]


def metadata():
    head = {
        "Metadata-Version": "2.1",
        "Name": setting("name"),
        "Version": version(),
        "Summary": setting("description"),
        "Requires-Python": setting("requires-python"),
        "Provides-Extra": "statements",
        "Requires-Dist": 'cryptography>=42; extra == "statements"',
        "Classifier": "Typing :: Typed",
        "Description-Content-Type": "text/markdown",
    }
    text = "".join(f"{name}: {value}\n" for name, value in head.items())
    return (text + "\n" + (HERE / "README.md").read_text(encoding="utf-8")).encode()


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
