-- Raw keys, for the endpoint that speaks etcd's protocol. Rows of objects have neither version
-- nor lease. An added column changes no row, however large the table is. MySQL, unlike MariaDB,
-- has no ADD COLUMN IF NOT EXISTS.
SET @alter = (SELECT IF(COUNT(*) = 0, 'ALTER TABLE log ADD COLUMN version BIGINT NULL, ADD COLUMN lease BIGINT NULL', 'DO 0')
              FROM information_schema.columns
              WHERE table_schema = DATABASE() AND table_name = 'log' AND column_name = 'version');
PREPARE change_log FROM @alter;
EXECUTE change_log;
DEALLOCATE PREPARE change_log;

-- ttl: seconds. expires: Unix milliseconds of this server's clock.
CREATE TABLE IF NOT EXISTS lease (
    id      BIGINT NOT NULL PRIMARY KEY,
    ttl     BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    KEY lease_expires (expires)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- kind: what the log is used for; the first to open it says so. lease_beat: when somebody last
-- watched over the leases.
INSERT IGNORE INTO meta (name, value) SELECT 'kind', 'api' FROM DUAL WHERE EXISTS (SELECT 1 FROM log);
INSERT IGNORE INTO meta (name, value) VALUES ('lease_beat', '0');

-- The current keys of an etcd endpoint, for people.
CREATE OR REPLACE VIEW kv AS
SELECT l.`key`           AS `key`,
       l.value           AS value,
       l.create_id >> 22 AS create_revision,
       l.id >> 22        AS mod_revision,
       l.version         AS version,
       l.lease           AS lease
FROM log l
WHERE l.deleted = 0
  AND l.id = (SELECT MAX(n.id) FROM log n WHERE n.`key` = l.`key`)
  AND (SELECT m.value FROM meta m WHERE m.name = 'kind') = 'etcd';
