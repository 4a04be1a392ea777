#!/usr/bin/env bash
# A study in parts, one for each task of a Slurm array. Each part has a ledger of its own, on the
# node's disk while it is used and in the folder PARTS (default: parts) between.
#
#   sbatch --array=0-15 examples/cluster/slurm.sh studies/plan-memory.yaml
#   blis ledger merge parts/part*.db && blis study studies/plan-memory.yaml
#
# A part that was stopped goes on where it was when it is submitted again. The second line runs
# nothing that the parts have run, and prints the findings.
#SBATCH --job-name=blis
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=B:INT@60
set -euo pipefail

study="${1:?name the study: sbatch --array=0-15 slurm.sh STUDY.yaml}"
parts="${PARTS:-parts}"
part="part${SLURM_ARRAY_TASK_ID:?submit it as an array: sbatch --array=0-15 slurm.sh STUDY.yaml}.db"
mkdir -p "$parts"
# SQLite needs a local disk; the folder with the parts is usually a network file system.
scratch="$(mktemp -d)"

keep() {
    if [ -e "$scratch/$part" ]; then
        cp "$scratch/$part" "$parts/$part.new"
        mv "$parts/$part.new" "$parts/$part"
    fi
    rm -rf "$scratch"
}
trap keep EXIT

if [ -e "$parts/$part" ]; then cp "$parts/$part" "$scratch/$part"; fi
# In the background, so that the signal before the time limit is handled at once: `blis` stops, and
# what it has finished is kept.
blis study "$study" --shard auto --jobs "${SLURM_CPUS_PER_TASK:-0}" --ledger "$scratch/$part" &
running=$!
trap 'kill -INT "$running"' INT
status=0
wait "$running" || status=$?
# A signal ends the wait before the command has ended.
while kill -0 "$running" 2>/dev/null; do wait "$running" || status=$?; done
exit "$status"
