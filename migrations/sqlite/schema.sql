-- The schema after all migrations, as the database describes it. Not to be edited:
-- go test ./migrations -run SchemaDump -update

CREATE TABLE log (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    key       TEXT    NOT NULL COLLATE BINARY,
    create_id INTEGER NOT NULL,
    deleted   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    value     BLOB    NOT NULL
, version INTEGER, lease INTEGER, author INTEGER, audit_id BLOB);

CREATE UNIQUE INDEX log_key_id ON log (key, id);

CREATE TABLE meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE VIEW objects AS
SELECT json_extract(o.json, '$.apiVersion')                        AS api_version,
       json_extract(o.json, '$.kind')                              AS kind,
       CASE instr(o.path, '/') WHEN 0 THEN '' ELSE substr(o.path, 1, instr(o.path, '/') - 1) END AS namespace,
       substr(o.path, instr(o.path, '/') + 1)                      AS name,
       o.id                                                        AS resource_version,
       json_extract(o.json, '$.metadata.creationTimestamp')        AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.at / 1000.0, 'unixepoch')  AS updated_at,
       json_set(o.json, '$.metadata.resourceVersion', CAST(o.id AS TEXT)) AS object,
       o.key                                                       AS key
FROM (SELECT r.*, substr(r.rest, instr(r.rest, '/') + 1) AS path
      FROM (SELECT l.id, l.at, l.key,
                   CASE WHEN substr(l.value, 1, 1) = x'7B' THEN CAST(l.value AS TEXT) END AS json,
                   substr(substr(l.key, 11), instr(substr(l.key, 11), '/') + 1) AS rest
            FROM log l
            WHERE l.deleted = 0
              AND l.id = (SELECT max(n.id) FROM log n WHERE n.key = l.key)) r) o;

CREATE TABLE lease (
    id      INTEGER PRIMARY KEY NOT NULL,
    ttl     INTEGER NOT NULL,
    expires INTEGER NOT NULL
);

CREATE INDEX lease_expires ON lease (expires);

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

CREATE TABLE author (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    who          TEXT NOT NULL,
    impersonator TEXT NOT NULL,
    verb         TEXT NOT NULL,
    subresource  TEXT NOT NULL,
    manager      TEXT NOT NULL
);

CREATE TABLE past (
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

CREATE UNIQUE INDEX past_key_id ON past (key, id);

CREATE INDEX past_expires ON past (expires);

CREATE TABLE kept (
    prefix TEXT    PRIMARY KEY NOT NULL COLLATE BINARY,
    lost   INTEGER NOT NULL
) WITHOUT ROWID;

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
