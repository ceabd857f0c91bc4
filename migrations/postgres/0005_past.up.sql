-- Old versions of objects that are kept longer than watches need them: compaction moves them here from
-- log, so that what serves the present never meets them. until_id and until_at are those of the change
-- that superseded a version, of a tombstone its own. expires: when it goes, in Unix milliseconds.
CREATE TABLE IF NOT EXISTS past (
    id        bigint PRIMARY KEY,
    key       text COLLATE "C" NOT NULL,
    create_id bigint  NOT NULL,
    deleted   boolean NOT NULL,
    at        bigint  NOT NULL,
    until_id  bigint  NOT NULL,
    until_at  bigint  NOT NULL,
    expires   bigint  NOT NULL,
    author    integer,
    audit_id  bytea,
    value     bytea   NOT NULL
);

CREATE UNIQUE INDEX IF NOT EXISTS past_key_id ON past (key, id);
CREATE INDEX IF NOT EXISTS past_expires ON past (expires);

-- What past lacks: the state of the resource with this prefix is known from the revision lost on. The
-- row with an empty prefix is for all others; without it past is not in use.
CREATE TABLE IF NOT EXISTS kept (
    prefix text COLLATE "C" PRIMARY KEY,
    lost   bigint NOT NULL
);

-- The changes that are kept, in either table, for people.
CREATE OR REPLACE VIEW history AS
SELECT to_timestamp(h.at / 1000.0)                           AS time,
       a.who                                                 AS who,
       a.impersonator                                        AS impersonator,
       a.verb                                                AS verb,
       a.subresource                                         AS subresource,
       a.manager                                             AS manager,
       CASE WHEN h.deleted THEN 'deleted' WHEN h.create_id = h.id THEN 'created' ELSE 'changed' END AS action,
       split_part(h.key, '/', 4) ||
           CASE split_part(h.key, '/', 3) WHEN 'core' THEN '' ELSE '.' || split_part(h.key, '/', 3) END AS resource,
       CASE WHEN substring(h.value FROM 1 FOR 1) = '\x7b'::bytea THEN
           replace(convert_from(h.value, 'UTF8'), '\u0000', '\ufffd')::json ->> 'kind' END AS kind,
       CASE split_part(h.key, '/', 6) WHEN '' THEN '' ELSE split_part(h.key, '/', 5) END AS namespace,
       CASE split_part(h.key, '/', 6) WHEN '' THEN split_part(h.key, '/', 5) ELSE split_part(h.key, '/', 6) END AS name,
       h.id                                                  AS revision,
       CASE WHEN length(h.audit_id) = 16 THEN encode(h.audit_id, 'hex')::uuid::text
            ELSE rtrim(convert_from(h.audit_id, 'UTF8'), ' ') END AS audit_id,
       h.key                                                 AS key
FROM (SELECT l.id, l.at, l.create_id, l.deleted, l.value, l.author, l.audit_id, l.key COLLATE "default" AS key
      FROM (SELECT id, key, create_id, deleted, at, value, author, audit_id FROM log
            UNION ALL
            SELECT id, key, create_id, deleted, at, value, author, audit_id FROM past) l
      WHERE l.key LIKE '/registry/%/%/%'
        AND (SELECT value FROM meta WHERE name = 'kind') <> 'etcd') h
LEFT JOIN author a ON a.id = h.author;
