"""`queue-depth` as a scorer in Python: it decides as the one that ships does, request by request."""

from __future__ import annotations

import sys

import blis


@blis.scorer(name="queue-depth-py", needs=["load"])
def queue_depth(request: blis.Request, cluster: blis.Cluster) -> list[float]:
    """1 for the least loaded instance, 0 for the most loaded, in proportion between."""
    loads = [instance.load for instance in cluster.instances]
    least, most = min(loads), max(loads)
    if least == most:
        return [1.0] * len(loads)
    return [(most - load) / (most - least) for load in loads]


def main(scenario: str) -> None:
    print(
        blis.run(
            scenario,
            policies=[queue_depth],
            routing_policy="weighted",
            routing_scorers="queue-depth-py:1",
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
