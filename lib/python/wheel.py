"""Makes the wheel of this package (PEP 517): its files, and three that describe them. With it `pip install ./lib/python`
needs no network and no other package, and leaves nothing behind here."""

import base64
import hashlib
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _told(name):
    with open(f"{HERE}/pyproject.toml", encoding="utf-8") as f:
        return re.search(rf'^{name} = "(.*)"$', f.read(), re.M)[1]


def _sources():
    names = os.listdir(f"{HERE}/intact_client")
    return sorted(f"intact_client/{name}" for name in names if name.endswith(".py") or name == "py.typed")


def _metadata():
    with open(f"{HERE}/README.md", encoding="utf-8") as f:
        text = f.read()
    return (f"Metadata-Version: 2.1\nName: intact-client\nVersion: {_told('version')}\n"
            f"Summary: {_told('description')}\n"
            f"License: MIT\nRequires-Python: {_told('requires-python')}\nClassifier: Typing :: Typed\n"
            f"Description-Content-Type: text/markdown\n\n{text}")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517."""
    version = _told("version")
    info, name = f"intact_client-{version}.dist-info", f"intact_client-{version}-py3-none-any.whl"
    files = {}
    for path in _sources():
        with open(f"{HERE}/{path}", "rb") as f:
            files[path] = f.read()
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: intact-client\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same bytes each time
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, text)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517."""
    base = f"intact_client-{_told('version')}"
    with tarfile.open(os.path.join(sdist_directory, f"{base}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as sdist:
        for path in ["pyproject.toml", "README.md", "wheel.py", *_sources()]:
            sdist.add(f"{HERE}/{path}", f"{base}/{path}")
        # PEP 517 asks for it.
        import io
        text = _metadata().encode()
        entry = tarfile.TarInfo(f"{base}/PKG-INFO")
        entry.size = len(text)
        sdist.addfile(entry, io.BytesIO(text))
    return f"{base}.tar.gz"
