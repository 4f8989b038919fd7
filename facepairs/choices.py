"""The allowed values of settings, as types: the command line lists them in its help.

Separate from `config`, because the command line imports this module at every start.
"""

from typing import Literal

MAX_MEGAPIXELS = "FACEPAIRS_MAX_MEGAPIXELS"  # the variable that limits the size of photos
# The variables that choose the file of the photo cache, or turn it off.
PHOTO_CACHE, NO_PHOTO_CACHE = "FACEPAIRS_PHOTO_CACHE", "FACEPAIRS_NO_PHOTO_CACHE"
DEVICE = "FACEPAIRS_DEVICE"  # the variable that chooses where networks run

Align = Literal["landmarks", "none"]
Store = Literal["auto", "files", "memory", "tfrecord"]
Loss = Literal["in-batch", "margin", "triplet"]
Devices = Literal["auto", "one", "all"]
Device = Literal["auto", "cpu", "cuda", "openvino", "coreml"]
Encoding = Literal["jpeg", "raw"]
ExportFormat = Literal["onnx", "litert", "litert-int8"]
BenchRow = Literal[
    "pil",
    "article",
    "article-parallel",
    "files",
    "files-unaligned",
    "tfrecord-jpeg",
    "tfrecord-raw",
    "memory",
    "limit",
]
