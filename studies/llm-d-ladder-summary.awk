# What the client of llm-d-ladder.awk would report: the 90th percentile of TTFT, and output tokens a
# second over the sum of the stages, each until its last answer. The stage that fills caches is left out.
#
#   blis run ... --trace ladder.jsonl --requests-out r.csv
#   sort -t, -k15,15n r.csv | awk -F, -f studies/llm-d-ladder-summary.awk
$1 ~ /^s[1-9]/ {
    split($1, id, "-")
    s = id[1]
    end = $2 + $16
    if (end > last[s]) last[s] = end
    if (!(s in first) || $2 < first[s]) first[s] = $2
    ttft[n++] = $15 / 1e6
    tokens += $10; cached += $11; expected += $12; prompt += $9
    if ($12 > $11) phantom += $12 - $11
    if (s == "s16") { at60++; ttft60 += $15 / 1e6; itl60 += ($16 - $15) / ($10 - 1) / 1000 }
}
END {
    for (s in last) seconds += (last[s] - first[s]) / 1e6
    printf "%.0f tokens/s, TTFT p90 %.2f s, ", tokens / seconds, ttft[int(n * 0.9)]
    printf "hit rate %.1f %%, phantom %.1f %%; ", 100 * cached / prompt, 100 * phantom / (expected + !expected)
    printf "at 60/s TTFT mean %.2f s, ITL mean %.1f ms\n", ttft60 / at60, itl60 / at60
}
