-- One row is one change; its id is the revision. Ids are given explicitly under the write
-- lock, as one more than the highest id or the floor, so the server's auto-increment step
-- does not matter. Keys are bytes, whatever the server's collation.
CREATE TABLE IF NOT EXISTS log (
    id        BIGINT          NOT NULL AUTO_INCREMENT PRIMARY KEY,
    `key`     VARBINARY(1024) NOT NULL,
    create_id BIGINT          NOT NULL,
    deleted   TINYINT(1)      NOT NULL,
    `at`      BIGINT          NOT NULL,
    value     LONGBLOB        NOT NULL,
    UNIQUE KEY log_key_id (`key`, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS meta (
    name  VARBINARY(64)  NOT NULL PRIMARY KEY,
    value VARBINARY(255) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- floor: revisions below it are compacted; its row is the write lock. swept: all rows up
-- to here were looked at; its row is the compactor's lock.
INSERT IGNORE INTO meta (name, value) VALUES
    ('format', '1'),
    ('floor', '0'),
    ('swept', '0'),
    ('cluster_id', UUID());

-- The current state, for people. The revision is spliced in as text, and JSON_VALUE is
-- used because it stops where it finds: MariaDB's other JSON functions return NULL for a
-- document that is nested deeper than 32 levels.
CREATE OR REPLACE VIEW objects AS
SELECT JSON_VALUE(CONVERT(l.value USING utf8mb4), '$.apiVersion')                       AS api_version,
       JSON_VALUE(CONVERT(l.value USING utf8mb4), '$.kind')                             AS kind,
       COALESCE(JSON_VALUE(CONVERT(l.value USING utf8mb4), '$.metadata.namespace'), '') AS namespace,
       JSON_VALUE(CONVERT(l.value USING utf8mb4), '$.metadata.name')                    AS name,
       l.id                                                                             AS resource_version,
       JSON_VALUE(CONVERT(l.value USING utf8mb4), '$.metadata.creationTimestamp')       AS created_at,
       FROM_UNIXTIME(l.`at` / 1000)                                                     AS updated_at,
       INSERT(CONVERT(l.value USING utf8mb4),
              LOCATE('"metadata":{', CONVERT(l.value USING utf8mb4)) + 12, 0,
              CONCAT('"resourceVersion":"', l.id, '",'))                                AS object
FROM log l
WHERE l.deleted = 0
  AND l.id = (SELECT MAX(n.id) FROM log n WHERE n.`key` = l.`key`);
