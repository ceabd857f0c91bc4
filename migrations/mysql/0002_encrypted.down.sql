DROP VIEW IF EXISTS objects;

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
