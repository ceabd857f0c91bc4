-- Raw keys, for the endpoint that speaks etcd's protocol. Rows of objects have neither version
-- nor lease. An added column changes no row, however large the table is.
ALTER TABLE log ADD COLUMN version INTEGER;
ALTER TABLE log ADD COLUMN lease INTEGER;

-- ttl: seconds. expires: Unix milliseconds.
CREATE TABLE lease (
    id      INTEGER PRIMARY KEY NOT NULL,
    ttl     INTEGER NOT NULL,
    expires INTEGER NOT NULL
);

CREATE INDEX lease_expires ON lease (expires);

-- kind: what the log is used for; the first to open it says so. lease_beat: when somebody last
-- watched over the leases.
INSERT OR IGNORE INTO meta (name, value) SELECT 'kind', 'api' WHERE EXISTS (SELECT 1 FROM log);
INSERT OR IGNORE INTO meta (name, value) VALUES ('lease_beat', '0');

-- The current keys of an etcd endpoint, for people.
CREATE VIEW kv AS
SELECT l.key             AS key,
       l.value           AS value,
       l.create_id >> 22 AS create_revision,
       l.id >> 22        AS mod_revision,
       l.version         AS version,
       l.lease           AS lease
FROM log l
WHERE l.deleted = 0
  AND l.id = (SELECT max(n.id) FROM log n WHERE n.key = l.key)
  AND (SELECT value FROM meta WHERE name = 'kind') = 'etcd';

-- SQLite cannot add a column only if it is missing. All of this is one transaction, so it is
-- never done by half, and in the same one it is noted as done.
UPDATE schema_migrations SET dirty = 0;
