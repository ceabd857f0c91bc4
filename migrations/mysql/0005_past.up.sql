-- Old versions of objects that are kept longer than watches need them: compaction moves them here from
-- log, so that what serves the present never meets them. until_id and until_at are those of the change
-- that superseded a version, of a tombstone its own. expires: when it goes, in Unix milliseconds.
CREATE TABLE IF NOT EXISTS past (
    id        BIGINT          NOT NULL PRIMARY KEY,
    `key`     VARBINARY(1024) NOT NULL,
    create_id BIGINT          NOT NULL,
    deleted   TINYINT(1)      NOT NULL,
    `at`      BIGINT          NOT NULL,
    until_id  BIGINT          NOT NULL,
    until_at  BIGINT          NOT NULL,
    expires   BIGINT          NOT NULL,
    author    INT             NULL,
    audit_id  VARBINARY(64)   NULL,
    value     LONGBLOB        NOT NULL,
    UNIQUE KEY past_key_id (`key`, id),
    KEY past_expires (expires)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What past lacks: the state of the resource with this prefix is known from the revision lost on. The
-- row with an empty prefix is for all others; without it past is not in use.
CREATE TABLE IF NOT EXISTS kept (
    prefix VARBINARY(1024) NOT NULL PRIMARY KEY,
    lost   BIGINT          NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The changes that are kept, in either table, for people.
CREATE OR REPLACE VIEW history AS
SELECT FROM_UNIXTIME(h.`at` / 1000)                       AS `time`,
       CONVERT(a.who USING utf8mb4)                       AS who,
       CONVERT(a.impersonator USING utf8mb4)              AS impersonator,
       CONVERT(a.verb USING utf8mb4)                      AS verb,
       CONVERT(a.subresource USING utf8mb4)               AS subresource,
       CONVERT(a.manager USING utf8mb4)                   AS manager,
       IF(h.deleted, 'deleted', IF(h.create_id = h.id, 'created', 'changed')) AS action,
       CONCAT(SUBSTRING_INDEX(SUBSTRING_INDEX(h.path, '/', 4), '/', -1),
              IF(h.path LIKE '/registry/core/%', '', CONCAT('.', SUBSTRING_INDEX(SUBSTRING_INDEX(h.path, '/', 3), '/', -1)))) AS resource,
       IF(LEFT(h.value, 1) = '{', JSON_VALUE(CONVERT(h.value USING utf8mb4), '$.kind'), NULL) AS kind,
       IF(h.parts = 5, SUBSTRING_INDEX(SUBSTRING_INDEX(h.path, '/', -2), '/', 1), '') AS namespace,
       SUBSTRING_INDEX(h.path, '/', -1)                   AS name,
       h.id                                               AS revision,
       IF(LENGTH(h.audit_id) = 16,
          LOWER(CONCAT_WS('-', SUBSTR(HEX(h.audit_id), 1, 8), SUBSTR(HEX(h.audit_id), 9, 4), SUBSTR(HEX(h.audit_id), 13, 4),
                          SUBSTR(HEX(h.audit_id), 17, 4), SUBSTR(HEX(h.audit_id), 21))),
          TRIM(TRAILING ' ' FROM CONVERT(h.audit_id USING utf8mb4))) AS audit_id,
       h.path                                             AS `key`
FROM (SELECT l.id, l.`at`, l.create_id, l.deleted, l.value, l.author, l.audit_id,
             CONVERT(l.`key` USING utf8mb4) AS path,
             LENGTH(l.`key`) - LENGTH(REPLACE(l.`key`, '/', '')) AS parts
      FROM (SELECT id, `key`, create_id, deleted, `at`, value, author, audit_id FROM log
            UNION ALL
            SELECT id, `key`, create_id, deleted, `at`, value, author, audit_id FROM past) l
      WHERE l.`key` LIKE '/registry/%/%/%'
        AND (SELECT m.value FROM meta m WHERE m.name = 'kind') <> 'etcd') h
LEFT JOIN author a ON a.id = h.author;
