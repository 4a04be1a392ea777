-- Layout 1 of a ledger. What users may rely on is the tables trials, scenarios, studies,
-- study_trials and verdicts, and the views, which are made from the table of metrics.

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
