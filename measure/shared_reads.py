"""What decode attention saves where sequences hold the same KV blocks, on one GPU.

A paged kernel, one program for each sequence and KV head of a model of the shape of Llama-3.1-8B,
in all layers as one CUDA graph. Writes $OUT/shared_reads.csv: microseconds a step, with a prefix
that all sequences share or with none.
"""
import os, statistics, time
import torch
import triton
import triton.language as tl

L, Q, K, D, B = 32, 32, 8, 128, 16


@triton.jit
def attend(q, kv, table, length, out, blocks, width: tl.constexpr, G: tl.constexpr,
           N: tl.constexpr, D: tl.constexpr):
    seq, head = tl.program_id(0), tl.program_id(1)
    rows, cols, part = tl.arange(0, 16), tl.arange(0, D), tl.arange(0, N)
    at = (seq * 8 + head) * G * D + rows[:, None] * D + cols[None, :]
    x = tl.load(q + at, mask=rows[:, None] < G, other=0.0)
    best = tl.full([16], -1e30, tl.float32)
    total = tl.zeros([16], tl.float32)
    y = tl.zeros([16, D], tl.float32)
    n = tl.load(length + seq)
    for start in range(0, n, N):
        token = start + part
        block = tl.load(table + seq * width + token // 16, mask=token < n, other=0)
        place = ((block.to(tl.int64) * 8 + head) * 16 + token % 16) * D
        k = tl.load(kv + place[:, None] + cols[None, :], mask=token[:, None] < n, other=0.0)
        s = tl.dot(x, tl.trans(k)) * 0.088
        s = tl.where(token[None, :] < n, s, -1e30)
        top = tl.maximum(best, tl.max(s, 1))
        p = tl.exp(s - top[:, None])
        keep = tl.exp(best - top)
        v = tl.load(kv + blocks * 8 * 16 * D + place[:, None] + cols[None, :],
                    mask=token[:, None] < n, other=0.0)
        y = y * keep[:, None] + tl.dot(p.to(tl.bfloat16), v)
        total, best = total * keep + tl.sum(p, 1), top
    tl.store(out + at, (y / total[:, None]).to(tl.bfloat16), mask=rows[:, None] < G)


blocks = 16384
new = lambda *shape: torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_()
cache = [new(2, blocks, K, B, D) for _ in range(L)]


def measure(lengths, table):
    """Median microseconds of a step of sequences of these lengths, whose blocks are in `table`."""
    n, width = table.shape
    length = torch.tensor(lengths, device="cuda", dtype=torch.int32)
    q, out = new(n, Q, D), new(n, Q, D)

    def step():
        for kv in cache:
            attend[(n, K)](q, kv, table, length, out, blocks, width, Q // K, 64, D, num_warps=4)
    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(25):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times[5:])


def tables(lengths, shared=0, groups=1):
    """Random blocks for sequences of these lengths; the first `shared` tokens of the sequences of a
    group, which take turns, are in the same blocks."""
    width, same = -(-max(lengths) // B), shared // B
    free = torch.randperm(blocks, device="cuda", dtype=torch.int32)
    table = torch.zeros(len(lengths), width, device="cuda", dtype=torch.int32)
    at = groups * same
    for i, tokens in enumerate(lengths):
        own = -(-tokens // B) - same
        table[i, :same] = free[i % groups * same:][:same]
        table[i, same:same + own] = free[at:at + own]
        at += own
    assert at <= blocks, "more blocks than there are"
    return table


if __name__ == "__main__":
    with open(os.environ.get("OUT", ".") + "/shared_reads.csv", "w") as file:
        print("decode_seqs,decode_context,shared_tokens,step_us_median", file=file)
        for n in (16, 32, 64, 96, 128, 192, 256):
            for context, shared in ((384, 0), (896, 0), (896, 256), (896, 512), (896, 768),
                                    (896, 880)):
                lengths = [context] * n
                takes = measure(lengths, tables(lengths, shared))
                print(n, context, shared, f"{takes:.1f}", sep=",", file=file)
    print(torch.__version__, triton.__version__, torch.cuda.get_device_name())
