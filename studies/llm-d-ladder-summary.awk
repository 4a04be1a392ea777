# Output tokens a second as a client counts them who waits for a stage to be answered before it begins
# the next: all tokens over the sum of the stages' lengths, each to its last answer. Without stage 0.
#
#   blis run ... --trace ladder.jsonl --requests-out r.csv && awk -F, -f studies/llm-d-ladder-summary.awk r.csv
NR > 1 {
    split($1, id, "-"); s = substr(id[1], 2) + 0
    if (s == 0) next
    end = $2 + $16
    if (end > last[s]) last[s] = end
    if (!(s in first) || $2 < first[s]) first[s] = $2
    tokens += $10; n++; sum += $15 / 1e6
    hit += $11; told += $12; prompt += $9
    if ($12 > $11) phantom += $12 - $11
}
END {
    for (s in last) length_s += (last[s] - first[s]) / 1e6
    printf "tokens/s %.0f  mean TTFT %.2f s  hit rate %.1f %%  phantom %.1f %%  seconds %.0f\n", \
        tokens / length_s, sum / n, 100 * hit / prompt, told ? 100 * phantom / told : 0, length_s
}
