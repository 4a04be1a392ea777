-- Layout 1 of a ledger. What users may rely on is the tables trials, scenarios, studies,
-- study_trials and verdicts, and the views.

-- The scenario behind a trial, as a document for `blis trial`.
CREATE TABLE scenarios (
    scenario_hash TEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL
) WITHOUT ROWID;

-- Finished trials, in the order in which they finished.
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    code TEXT NOT NULL,
    scenario_hash TEXT NOT NULL,
    -- An integer; text if it needs all of 64 bits.
    seed NOT NULL,
    -- JSON.
    row TEXT NOT NULL
);
CREATE INDEX trials_by_scenario ON trials (scenario_hash);

-- Processes that run trials. Each holds a lock on its file as long as it lives.
CREATE TABLE owners (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lock TEXT NOT NULL
);

-- Trials that are being run, and by whom.
CREATE TABLE claims (
    key TEXT NOT NULL PRIMARY KEY,
    owner INTEGER NOT NULL
) WITHOUT ROWID;

-- Every run that was begun; `finished` is 0 if its process died or it failed.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    owner INTEGER NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_key ON runs (key);

CREATE TABLE studies (
    id INTEGER PRIMARY KEY,
    study TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    question TEXT NOT NULL,
    -- JSON lists of names.
    factors TEXT NOT NULL,
    metrics TEXT NOT NULL,
    code TEXT NOT NULL,
    version TEXT NOT NULL
);

-- Which trials a study needs; `levels` is a JSON list with one level for each factor.
CREATE TABLE study_trials (
    study TEXT NOT NULL,
    cell INTEGER NOT NULL,
    levels TEXT NOT NULL,
    seed NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (study, cell, seed)
) WITHOUT ROWID;
CREATE INDEX study_trials_by_key ON study_trials (key);

CREATE TABLE verdicts (
    study TEXT NOT NULL,
    number INTEGER NOT NULL,
    hypothesis TEXT NOT NULL,
    prediction TEXT NOT NULL,
    mechanism TEXT,
    outcome TEXT NOT NULL,
    why TEXT NOT NULL,
    seeds INTEGER NOT NULL,
    level REAL,
    -- JSON.
    effects TEXT,
    PRIMARY KEY (study, number)
) WITHOUT ROWID;

-- One line a trial: the numbers of all its requests.
CREATE VIEW numbers AS
SELECT key, code, scenario_hash, seed,
    row ->> '$.run.end' AS "end",
    row ->> '$.cluster.saturation' AS saturation,
    row ->> '$.cluster.injected_requests' AS injected_requests,
    row ->> '$.cluster.completed_requests' AS completed_requests,
    row ->> '$.cluster.rejected_requests' AS rejected_requests,
    row ->> '$.cluster.preemption_count' AS preemption_count,
    row ->> '$.cluster.ttft_mean_ms' AS ttft_mean_ms,
    row ->> '$.cluster.ttft_p50_ms' AS ttft_p50_ms,
    row ->> '$.cluster.ttft_p99_ms' AS ttft_p99_ms,
    row ->> '$.cluster.itl_mean_ms' AS itl_mean_ms,
    row ->> '$.cluster.itl_p99_ms' AS itl_p99_ms,
    row ->> '$.cluster.e2e_mean_ms' AS e2e_mean_ms,
    row ->> '$.cluster.e2e_p99_ms' AS e2e_p99_ms,
    row ->> '$.cluster.responses_per_sec' AS responses_per_sec,
    row ->> '$.cluster.tokens_per_sec' AS tokens_per_sec,
    row ->> '$.cluster.goodput_per_sec' AS goodput_per_sec,
    row ->> '$.cluster.slo_attainment' AS slo_attainment,
    row ->> '$.cluster.jain_fairness' AS jain_fairness,
    row ->> '$.kv.hit_rate' AS hit_rate,
    row ->> '$.kv.evicted_blocks' AS evicted_blocks,
    row ->> '$.kv.offloaded_blocks' AS offloaded_blocks,
    row ->> '$.kv.reloaded_blocks' AS reloaded_blocks
FROM trials;

-- One line a trial and service class.
CREATE VIEW class_numbers AS
SELECT trials.key, trials.code, trials.scenario_hash, trials.seed,
    class.key AS class,
    class.value ->> '$.injected_requests' AS injected_requests,
    class.value ->> '$.completed_requests' AS completed_requests,
    class.value ->> '$.rejected_requests' AS rejected_requests,
    class.value ->> '$.ttft_mean_ms' AS ttft_mean_ms,
    class.value ->> '$.ttft_p50_ms' AS ttft_p50_ms,
    class.value ->> '$.ttft_p99_ms' AS ttft_p99_ms,
    class.value ->> '$.itl_mean_ms' AS itl_mean_ms,
    class.value ->> '$.itl_p99_ms' AS itl_p99_ms,
    class.value ->> '$.e2e_mean_ms' AS e2e_mean_ms,
    class.value ->> '$.e2e_p99_ms' AS e2e_p99_ms,
    class.value ->> '$.goodput_per_sec' AS goodput_per_sec,
    class.value ->> '$.slo_attainment' AS slo_attainment
FROM trials, json_each(trials.row, '$.classes') AS class;

-- One line a trial of a study, with the names of its cell.
CREATE VIEW study_numbers AS
SELECT studies.name AS name, study_trials.study, study_trials.cell, study_trials.levels, numbers.*
FROM study_trials
JOIN studies ON studies.study = study_trials.study
JOIN numbers ON numbers.key = study_trials.key;
