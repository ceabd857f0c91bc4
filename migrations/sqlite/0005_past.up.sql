-- Old versions of objects that are kept longer than watches need them: compaction moves them here from
-- log, so that what serves the present never meets them. until_id and until_at are those of the change
-- that superseded a version, of a tombstone its own. expires: when it goes, in Unix milliseconds.
CREATE TABLE IF NOT EXISTS past (
    id        INTEGER PRIMARY KEY,
    key       TEXT    NOT NULL COLLATE BINARY,
    create_id INTEGER NOT NULL,
    deleted   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    until_id  INTEGER NOT NULL,
    until_at  INTEGER NOT NULL,
    expires   INTEGER NOT NULL,
    author    INTEGER,
    audit_id  BLOB,
    value     BLOB    NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS past_key_id ON past (key, id);
CREATE INDEX IF NOT EXISTS past_expires ON past (expires);

-- What past lacks: the state of the resource with this prefix is known from the revision lost on. The
-- row with an empty prefix is for all others; without it past is not in use.
CREATE TABLE IF NOT EXISTS kept (
    prefix TEXT    PRIMARY KEY NOT NULL COLLATE BINARY,
    lost   INTEGER NOT NULL
) WITHOUT ROWID;

DROP VIEW IF EXISTS history;

-- The changes that are kept, in either table, for people.
CREATE VIEW history AS
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', h.at / 1000.0, 'unixepoch') AS time,
       a.who                                                     AS who,
       a.impersonator                                            AS impersonator,
       a.verb                                                    AS verb,
       a.subresource                                             AS subresource,
       a.manager                                                 AS manager,
       CASE WHEN h.deleted = 1 THEN 'deleted' WHEN h.create_id = h.id THEN 'created' ELSE 'changed' END AS action,
       substr(h.rest, 1, instr(h.rest, '/') - 1) ||
           CASE h.grp WHEN 'core' THEN '' ELSE '.' || h.grp END  AS resource,
       CASE WHEN substr(h.value, 1, 1) = x'7B' THEN json_extract(CAST(h.value AS TEXT), '$.kind') END AS kind,
       CASE instr(h.path, '/') WHEN 0 THEN '' ELSE substr(h.path, 1, instr(h.path, '/') - 1) END AS namespace,
       substr(h.path, instr(h.path, '/') + 1)                    AS name,
       h.id                                                      AS revision,
       CASE WHEN length(h.audit_id) = 16 THEN
           lower(substr(hex(h.audit_id), 1, 8) || '-' || substr(hex(h.audit_id), 9, 4) || '-' ||
                 substr(hex(h.audit_id), 13, 4) || '-' || substr(hex(h.audit_id), 17, 4) || '-' ||
                 substr(hex(h.audit_id), 21))
       ELSE rtrim(CAST(h.audit_id AS TEXT), ' ') END             AS audit_id,
       h.key                                                     AS key
FROM (SELECT k.*, substr(k.rest, instr(k.rest, '/') + 1) AS path
      FROM (SELECT l.*,
                   substr(l.key, 11, instr(substr(l.key, 11), '/') - 1) AS grp,
                   substr(substr(l.key, 11), instr(substr(l.key, 11), '/') + 1) AS rest
            FROM (SELECT id, key, create_id, deleted, at, value, author, audit_id FROM log
                  UNION ALL
                  SELECT id, key, create_id, deleted, at, value, author, audit_id FROM past) l
            WHERE l.key LIKE '/registry/%/%/%'
              AND (SELECT value FROM meta WHERE name = 'kind') <> 'etcd') k) h
LEFT JOIN author a ON a.id = h.author;
