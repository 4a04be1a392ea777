"""What decode attention takes where contexts differ, and what it saves where several groups of
sequences share a prefix each, on one GPU.

The kernel of shared_reads.py. Writes $OUT/uneven_reads.csv: microseconds a step. Contexts are
`even`, have `one` long among equals, or are `spread` (a part and an exponential rest, as of requests
that were caught midway); of `groups` sequences share their first tokens by turns, or none do.
"""
import os, random, torch, triton
from shared_reads import measure, tables

random.seed(1)
MEAN = 1024


def spread(n):
    """Contexts of MEAN on average, half of it fixed."""
    return [MEAN // 2 + min(int(random.expovariate(2 / MEAN)), 6 * MEAN) for _ in range(n)]


def cases():
    for n in (4, 8, 12, 16, 17, 20, 24, 32, 48, 64, 96, 128, 192, 224):
        yield "even", [MEAN] * n, 0, 1
        for longest in (2048, 4096, 8192):
            for place in (0, n - 1):
                contexts = [MEAN] * n
                contexts[place] = longest
                yield f"one at {place}", contexts, 0, 1
        for _ in range(3):
            yield "spread", spread(n), 0, 1
    for n, prefix in ((64, 256), (64, 1024), (64, 2048), (128, 256), (128, 1024), (224, 512)):
        yield "no groups", [prefix + 384] * n, 0, 1
        for groups in (1, 4, 16, n // 2):
            yield "groups", [prefix + 384] * n, prefix, groups


with open(os.environ.get("OUT", ".") + "/uneven_reads.csv", "w") as file:
    print("kind,decode_seqs,decode_context_sum,decode_longest,shared_tokens,groups,step_us_median",
          file=file)
    for kind, contexts, prefix, groups in cases():
        takes = measure(contexts, tables(contexts, prefix, groups))
        print(kind, len(contexts), sum(contexts), max(contexts), prefix, groups, f"{takes:.1f}",
              sep=",", file=file, flush=True)
print(torch.__version__, triton.__version__, torch.cuda.get_device_name())
