-- One row is one change; its id is the revision. Ids are given explicitly, as one more
-- than the highest id or the floor; AUTOINCREMENT keeps SQLite from ever reusing one.
CREATE TABLE IF NOT EXISTS log (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    key       TEXT    NOT NULL COLLATE BINARY,
    create_id INTEGER NOT NULL,
    deleted   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    value     BLOB    NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS log_key_id ON log (key, id);

CREATE TABLE IF NOT EXISTS meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- floor: revisions below it are compacted. swept: all rows up to here were looked at.
INSERT OR IGNORE INTO meta (name, value) VALUES
    ('format', '1'),
    ('floor', '0'),
    ('swept', '0'),
    ('cluster_id', lower(
        hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
        || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2)
        || '-' || hex(randomblob(6))));

-- The current state, for people. A value is JSON text; it is cast because SQLite would
-- take a blob for its own binary JSON.
CREATE VIEW IF NOT EXISTS objects AS
SELECT json_extract(o.json, '$.apiVersion')                        AS api_version,
       json_extract(o.json, '$.kind')                              AS kind,
       coalesce(json_extract(o.json, '$.metadata.namespace'), '')  AS namespace,
       json_extract(o.json, '$.metadata.name')                     AS name,
       o.id                                                        AS resource_version,
       json_extract(o.json, '$.metadata.creationTimestamp')        AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.at / 1000.0, 'unixepoch')  AS updated_at,
       json_set(o.json, '$.metadata.resourceVersion', CAST(o.id AS TEXT)) AS object
FROM (SELECT l.id, l.at, CAST(l.value AS TEXT) AS json
      FROM log l
      WHERE l.deleted = 0
        AND l.id = (SELECT max(n.id) FROM log n WHERE n.key = l.key)) o;
