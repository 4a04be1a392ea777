"""Steps of a model of the shape of Llama-3.1-8B by size in tokens, on one GPU, as CUDA graphs.

Writes the columns of data/h200/steps_grid.csv to $OUT/steps_sizes.csv: steps of one prompt of every
size that the measured server pads to. The weights of queries, keys and values are joined, and those
of gate and up; what is between the matrix products is fused.
"""
import os, statistics, time
import torch
import torch.nn.functional as F

L, H, Q, K, D, M, V = 32, 4096, 32, 8, 128, 14336, 128256
LISTED = [16, 32, 64, 96, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792,
          2048, 2304]
torch.manual_seed(0)
torch._dynamo.config.recompile_limit = 99
new = lambda *shape: torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_(0, 0.02)
layers = [(new(H), new((Q + 2 * K) * D, H), new(H, Q * D), new(H), new(2 * M, H), new(H, M))
          for _ in range(L)]
embed, head, last = new(V, H), new(V, H), new(H)
cache = [new(2, 16384, K, D) for _ in range(L)]
angle = torch.outer(torch.arange(4096.0), 5e5 ** (-torch.arange(0, D, 2) / D)).cuda()
cos, sin = angle.cos().bfloat16()[:, None], angle.sin().bfloat16()[:, None]


def turn(x, n):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos[:n] - b * sin[:n], b * cos[:n] + a * sin[:n]), -1)


@torch.compile(dynamic=False)
def norm(x, y, w):
    x = x + y
    return x, F.rms_norm(x, (H,), w)


@torch.compile(dynamic=False)
def heads(qkv):
    n = len(qkv)
    q, k, v = (y.view(n, -1, D) for y in qkv.split([Q * D, K * D, K * D], -1))
    return turn(q, n), turn(k, n), v.contiguous()


@torch.compile(dynamic=False)
def gated(up):
    g, u = up.chunk(2, -1)
    return F.silu(g) * u


def prefill(ids, slots):
    n, x = len(ids), embed[ids]
    y = torch.zeros_like(x)
    for (n1, wqkv, wo, n2, wup, wdown), kv in zip(layers, cache):
        x, a = norm(x, y, n1)
        q, k, v = heads(F.linear(a, wqkv))
        kv[0].index_copy_(0, slots, k)
        kv[1].index_copy_(0, slots, v)
        q, k, v = (y.transpose(0, 1)[None] for y in (q, k, v))
        q = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x, a = norm(x, F.linear(q[0].transpose(0, 1).reshape(n, Q * D), wo), n2)
        y = F.linear(gated(F.linear(a, wup)), wdown)
    return F.linear(norm(x[-1:], y[-1:], last)[1], head).argmax(-1)


def measure(n):
    ids, slots = torch.randint(V, (n,), device="cuda"), torch.randperm(16384, device="cuda")[:n]
    with torch.cuda.stream(torch.cuda.Stream()):
        prefill(ids, slots), prefill(ids, slots)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prefill(ids, slots)
    times = []
    for _ in range(25):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6)
    times = sorted(times[5:])
    return statistics.median(times), times[0], times[-1]


out = open(os.environ.get("OUT", ".") + "/steps_sizes.csv", "w")
print("kind,prefill_seqs,prefill_tokens,prefill_past_tokens,decode_seqs,decode_context,"
      "step_us_median,step_us_min,step_us_max", file=out)
with torch.inference_mode():
    for n in LISTED:
        t = ",".join(f"{x:.1f}" for x in measure(n))
        print(f"prefill,1,{n},0,0,0,{t}", file=out, flush=True)
print(torch.__version__, torch.cuda.get_device_name(), torch.version.cuda)
