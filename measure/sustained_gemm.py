"""How fast an H200 multiplies matrices for seconds on end, and one product at a time with pauses.

A GPU that is busy all the time reaches its power limit and lowers its clock; tables of single
operators do not show that. Writes data/h200/sustained_gemm.csv: the four products of a layer of
Llama-3.1-8B, microseconds by product with pauses and together without.

Needs PyTorch 2.6 or newer and a GPU with FP8. Takes about two minutes.

    python measure/sustained_gemm.py > data/h200/sustained_gemm.csv
"""

import statistics
import time

import torch

SHAPES = {"qkv": (6144, 4096), "out": (4096, 4096), "up": (28672, 4096), "down": (4096, 14336)}
LAYERS = 8
ONE = torch.ones((), device="cuda")


def product(x, w):
    if w.dtype == torch.bfloat16:
        return torch.nn.functional.linear(x, w)
    scales = {"scale_a": ONE, "scale_b": ONE}
    return torch._scaled_mm(x, w.t(), **scales, out_dtype=torch.bfloat16, use_fast_accum=True)


def graph(run):
    run()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        run()
    return captured.replay


def micros(run, times):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / times * 1e3


def paused(run):
    found = []
    for _ in range(6):
        time.sleep(0.15)
        found.append(micros(run, 2))
    return statistics.median(found) / LAYERS


def sustained(run):
    begin = time.time()
    while time.time() - begin < 2.5:
        micros(run, 20)
    return micros(run, 30) / LAYERS


print("dtype,tokens," + ",".join(f"{name}_us" for name in SHAPES) + ",sustained_us")
for name, dtype in (("bf16", torch.bfloat16), ("fp8", torch.float8_e4m3fn)):
    some = lambda *shape: (torch.randn(shape, device="cuda") * 0.02).to(torch.bfloat16).to(dtype)
    weights = [[some(n, k) for n, k in SHAPES.values()] for _ in range(LAYERS)]
    for tokens in (64, 128, 256, 512, 1024, 2048, 4096, 8192):
        inputs = [some(tokens, k) for _, k in SHAPES.values()]
        alone = [
            paused(graph(lambda i=i: [product(inputs[i], layer[i]) for layer in weights]))
            for i in range(len(SHAPES))
        ]
        both = lambda: [product(x, w) for layer in weights for x, w in zip(inputs, layer)]
        row = [f"{value:.1f}" for value in [*alone, sustained(graph(both))]]
        print(",".join([name, str(tokens), *row]), flush=True)
