"""Derives crates/latency/operators/*.bin from NVIDIA's operator tables, and prints their checksums.

NVIDIA publishes how long the operators of vLLM take, measured one at a time, in the repository
ai-dynamo/aiconfigurator (Apache-2.0). What is kept: matrix products, prefill and decode attention,
latent attention (MLA), experts and all-reduce, by the newest version of vLLM that was measured;
experts also where each of 2 to 64 GPUs has some of them whole; and an all-gather with a
reduce-scatter of the newest NCCL.


- Grids are thinned to about powers of two, products to sides from 128.
- Products and experts that the newest version takes 1.25 times as long for as an earlier one since
  0.18 does are the earlier one's: such jumps are the host's time to launch a kernel, which a
  captured graph does not have. Products of FP8 by blocks, where that is usual, are the least of
  the versions.
- More work never takes less time: each value is the geometric mean of the largest before it and
  the smallest after it, along all axes; of FP8 by blocks it is the smallest after it. Sizes that
  were not measured, because memory ended, follow their neighbour in proportion.

A file is: 8 bytes FNV-1a of all that follows, 4 bytes length of a JSON head, the head, then the
values as 16-bit numbers v (little-endian): exp(v / 2500 - 2) microseconds.

Needs Python 3.11, numpy, pandas, pyarrow, and a checkout of the repository:

    python measure/operator_tables.py PATH/TO/aiconfigurator crates/latency/operators
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pandas as pd

GPUS = {
    "A100-80": "a100_sxm", "H100": "h100_sxm", "H200": "h200_sxm", "L40S": "l40s",
    "B200": "b200_sxm", "B300": "b300_sxm", "GB200": "gb200",
    "RTX-PRO-6000": "rtx_pro_6000_server",
}
TYPES = {
    "bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block", "nvfp4": "nvfp4",
    "int4_wo": "int4", "w4a16_mxfp4": "mxfp4",
}
TOKENS = [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 512, 768, 1024, 1536, 2048, 3072,
          4096, 6144, 8192, 16384]
LENGTHS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
LIMITS = {"gemm": 128, "decode": 16, "mla-decode": 16}


def versions(folder, name):
    numbered = lambda path: [int(part) for part in path.parent.name.split(".")]
    found = [p for p in folder.glob(f"vllm/*/{name}.parquet") if p.parent.name.count(".") == 2]
    return sorted((p for p in found if "dev" not in p.parent.name), key=numbered), numbered


def newest(folder, name, keys):
    """Microseconds by `keys`, and the version; see above for what earlier versions are for."""
    paths, numbered = versions(folder, name)
    if not paths:
        return None, None
    kept = [path for path in paths if numbered(path) >= [0, 18, 0]] or paths[-1:]
    if keys[0] not in ("gemm_dtype", "moe_dtype"):
        kept = kept[-1:]
    least = [pd.read_parquet(path).groupby(keys).latency.min() for path in kept]
    now = least[-1]
    if len(least) > 1:
        before = pd.concat(least[:-1]).groupby(level=keys).min()
        now, before = now.align(before)
        least = np.fmin(now, before)
        blocks = now.index.get_level_values(0) == "fp8_block"
        late = now.isna() | (now > 1.25 * before) | (blocks & (keys[0] == "gemm_dtype"))
        now = now.where(~late, least)
    return now.dropna() * 1e3, kept[-1].parent.name


def square(values, axes, powers, least):
    """An array over `axes` that grows along all of them."""
    array = np.full([len(axis) for axis in axes], np.nan)
    for place, value in values.items():
        place = place if isinstance(place, tuple) else (place,)
        array[tuple(axis.index(x) for axis, x in zip(axes, place))] = value
    low, high = (np.where(np.isnan(array), fill, array) for fill in (np.inf, 0.0))
    for at in range(array.ndim):
        low = np.flip(np.minimum.accumulate(np.flip(low, at), at), at)
        high = np.maximum.accumulate(high, at)
    array = low if least else np.sqrt(low * np.where(high == 0.0, low, high))
    for place in np.argwhere(~np.isfinite(array)):
        options = []
        for at, (axis, power) in enumerate(zip(axes, powers)):
            if place[at] > 0:
                before = tuple(place - np.eye(array.ndim, dtype=int)[at])
                options.append(array[before] * (axis[place[at]] / axis[place[at] - 1]) ** power)
        array[tuple(place)] = max(options)
    return array


class Tables:
    def __init__(self):
        self.axes, self.tables, self.values, self.size = [], [], [], 0

    def add(self, values, powers, least=False, **what):
        axes = [sorted({int(x) for x in values.index.get_level_values(at)})
                for at in range(values.index.nlevels)]
        array = square(values, axes, powers, least).ravel()
        assert np.isfinite(array).all() and (array > 0).all(), what
        for axis in axes:
            if axis not in self.axes:
                self.axes.append(axis)
        places = [self.axes.index(axis) for axis in axes]
        self.tables.append({**what, "axes": places, "at": self.size})
        codes = np.clip(np.round((np.log(array) + 2.0) * 2500.0), 0, 65535)
        self.values.append(codes.astype("<u2").tobytes())
        self.size += array.size

    def write(self, path, head):
        text = json.dumps({**head, "axes": self.axes, "tables": self.tables}, separators=(",", ":"))
        body = struct.pack("<I", len(text)) + text.encode() + b"".join(self.values)
        sum_ = 0xCBF29CE484222325
        for byte in body:
            sum_ = (sum_ ^ byte) * 0x100000001B3 % 2**64
        path.write_bytes(struct.pack("<Q", sum_) + body)


def gemm(tables, folder):
    values, version = newest(folder / "gemm", "gemm_perf", ["gemm_dtype", "m", "n", "k"])
    for dtype, part in values.groupby(level=0):
        part = part.droplevel(0).reset_index()
        part = part[part.m.isin(TOKENS) & (part.n >= 128) & (part.k >= 128)]
        if len(part) > 5000:
            tables.add(part.set_index(["m", "n", "k"]).latency, (1, 1, 1), dtype == "fp8_block",
                       op="gemm", type=TYPES[dtype])
    return version


def attention(tables, folder):
    names = ["num_heads", "num_key_value_heads", "head_dim", "kv_cache_dtype", "batch_size"]
    for op, name, column, power in (("decode", "generation_attention_perf", "step", 1),
                                    ("prefill", "context_attention_perf", "isl", 2)):
        path = versions(folder / "attention", name)[0][-1]
        rows = pd.read_parquet(path)
        if "window_size" in rows:
            rows = rows[rows.window_size == 0]
        rows = rows[rows.head_dim.isin([64, 128, 256])]
        rows["x"] = rows[column] + (1 if op == "decode" else 0)
        rows = rows[rows.x >= 16] if op == "decode" else rows[rows.x.isin(LENGTHS)]
        for (heads, kv, width, dtype), part in rows.groupby(names[:4]):
            values = part.groupby(["batch_size", "x"]).latency.min() * 1e3
            tables.add(values, (1, power), op=op, heads=int(heads),
                       kv_heads=int(heads if kv == 0 else kv), width=int(width),
                       kv="fp8" if dtype == "fp8" else "bf16")
    return path.parent.name


def latent(tables, folder):
    for op, name, column, power in (("mla-decode", "mla_generation_module_perf", "step", 1),
                                    ("mla-prefill", "mla_context_module_perf", "isl", 2)):
        paths = versions(folder / "mla", name)[0]
        if not paths:
            return None
        rows = pd.read_parquet(paths[-1])
        rows = rows[rows[column] >= 16] if power == 1 else rows[rows[column].isin(LENGTHS)]
        for (heads, dtype, gemm), part in rows.groupby(["num_heads", "kv_cache_dtype", "gemm_type"]):
            tables.add(part.groupby(["batch_size", column]).latency.min() * 1e3, (1, power), op=op,
                       type=TYPES[gemm], heads=int(heads), kv="fp8" if dtype == "fp8" else "bf16")
    return paths[-1].parent.name


def experts(tables, folder):
    keys = ["moe_dtype", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
            "moe_ep_size", "distribution", "num_tokens"]
    values, version = newest(folder / "moe", "moe_perf", keys)
    rows = values.reset_index()
    rows = rows[(rows.moe_ep_size <= 64) & (rows.distribution == "power_law_1.01")]
    rows = rows[rows.moe_dtype.isin(TYPES) & (rows.inter_size % rows.moe_tp_size == 0)]
    rows = rows[(rows.moe_ep_size == 1) | (rows.moe_tp_size == 1)]
    # Those of whole experts come last: the others stay where they were.
    for key, part in sorted(rows.groupby(keys[:7]), key=lambda group: group[0][6] > 1):
        dtype, hidden, inter, active, total, tp, ep = key
        tables.add(part.set_index("num_tokens").latency, (1,), op="experts", type=TYPES[dtype],
                   hidden=int(hidden), width=int(inter // tp), active=int(active),
                   total=int(total), **({"ep": int(ep)} if ep > 1 else {}))
    return version


def all_reduce(tables, folder):
    path = versions(folder / "comm", "custom_allreduce_perf")[0][-1]
    rows = pd.read_parquet(path)
    rows = rows[rows.backend == "vllm_graph"]
    for gpus, part in rows.groupby("num_gpus"):
        values = part.groupby("message_size").latency.min() * 1e3
        tables.add(values, (1,), op="all-reduce", gpus=int(gpus))
    return path.parent.name


def gather_scatter(tables, folder):
    numbered = lambda path: [int(part) for part in path.parent.name.split(".")]
    path = max((folder / "comm/nccl").glob("*/nccl_perf.parquet"), key=numbered, default=None)
    if path is None:
        return None
    rows = pd.read_parquet(path)
    rows = rows[rows.op_name.isin(["all_gather", "reduce_scatter"]) & (rows.nccl_dtype == "half")]
    for gpus, part in rows.groupby("num_gpus"):
        values = part.groupby(["op_name", "message_size"]).latency.min().unstack(0).sum(axis=1) * 1e3
        tables.add(values, (1,), op="gather-scatter", gpus=int(gpus))
    return f"NCCL {path.parent.name}"


def main(repository, out):
    systems = Path(repository) / "aic-core/src/aiconfigurator_core/systems/data"
    Path(out).mkdir(exist_ok=True)
    for name, system in GPUS.items():
        tables, folder = Tables(), systems / system
        parts = {"gemm": gemm, "attention": attention, "mla": latent, "experts": experts,
                 "all-reduce": all_reduce, "gather-scatter": gather_scatter}
        version = {part: derive(tables, folder) for part, derive in parts.items()}
        path = Path(out) / f"{name}.bin"
        tables.write(path, {"gpu": name, "vllm": version})
        sum_ = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{sum_}  {path.name} ({path.stat().st_size} bytes, vLLM {version})")


if __name__ == "__main__":
    main(*sys.argv[1:])
