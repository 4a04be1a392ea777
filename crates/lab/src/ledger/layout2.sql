-- Layout 2 of a ledger: saturations that were measured, so that scenarios whose rate is a share of
-- it are read at once. The key is a hash of the code, the cluster and the workload.
CREATE TABLE saturations (
    key TEXT NOT NULL PRIMARY KEY,
    code TEXT NOT NULL,
    -- Arrivals a second.
    per_sec REAL NOT NULL
) WITHOUT ROWID;
