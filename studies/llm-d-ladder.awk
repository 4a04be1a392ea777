# The load of llm-d's precise-prefix benchmark as a trace: 150 contexts of 6,000 tokens, five
# questions of 1,200 tokens to each, asked again and again in one shuffled order, answers of 1,000
# tokens, Poisson arrivals in 17 stages of which the first fills the caches.
#
#   awk -v questions=5 -f studies/llm-d-ladder.awk > ladder.jsonl
#
# The client waits until a stage is answered before it begins the next; here a stage begins `gap`
# (300) seconds after the last one ended. `questions=0` makes every question a new one.
function draw() { state = (state * 16807) % 2147483647; return state / 2147483647 }
BEGIN {
    if (questions == "") questions = 5
    if (gap == "") gap = 300
    state = seed == "" ? 42 : seed
    for (i = 0; i < 10; i++) draw()
    each = questions > 0 ? questions : 5
    total = 150 * each
    for (i = 0; i < total; i++) order[i] = i
    for (i = total - 1; i > 0; i--) {
        j = int(draw() * (i + 1)); t = order[i]; order[i] = order[j]; order[j] = t
    }
    stages = split("15 3 10 15 20 22 25 30 35 40 43 46 49 52 55 57 60", rate, " ")
    split("50 20 20 20 38 34 30 25 21 38 36 33 30 29 27 26 25", span, " ")
    for (s = 1; s <= stages; s++) {
        for (at = -log(draw()) / rate[s]; at < span[s]; at += -log(draw()) / rate[s]) {
            who = order[n % total]
            group = int(who / each)
            question = questions > 0 ? sprintf("q%d", who) : sprintf("n%d", n)
            printf "{\"id\":\"s%d-%d\",\"arrival_us\":%.0f,\"prompt\":[[\"c%d\",6000],[\"%s\",1200]],", \
                s - 1, n, (start + at) * 1000000, group, question
            printf "\"output_tokens\":1000,\"output_stream\":\"a%d\"}\n", n
            n++
        }
        start += span[s] + gap
    }
}
