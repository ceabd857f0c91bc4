-- The view shows encrypted objects, too: what their keys say, and null for the rest. A value
-- that is not encrypted begins with a brace.
CREATE OR REPLACE VIEW objects AS
SELECT JSON_VALUE(o.json, '$.apiVersion')                 AS api_version,
       JSON_VALUE(o.json, '$.kind')                       AS kind,
       IF(o.parts = 5, SUBSTRING_INDEX(SUBSTRING_INDEX(o.path, '/', -2), '/', 1), '') AS namespace,
       SUBSTRING_INDEX(o.path, '/', -1)                   AS name,
       o.id                                               AS resource_version,
       JSON_VALUE(o.json, '$.metadata.creationTimestamp') AS created_at,
       FROM_UNIXTIME(o.`at` / 1000)                       AS updated_at,
       INSERT(o.json, LOCATE('"metadata":{', o.json) + 12, 0, CONCAT('"resourceVersion":"', o.id, '",')) AS object,
       o.path                                             AS `key`
FROM (SELECT l.id, l.`at`,
             IF(LEFT(l.value, 1) = '{', CONVERT(l.value USING utf8mb4), NULL) AS json,
             CONVERT(l.`key` USING utf8mb4) AS path,
             LENGTH(l.`key`) - LENGTH(REPLACE(l.`key`, '/', '')) AS parts
      FROM log l
      WHERE l.deleted = 0
        AND l.id = (SELECT MAX(n.id) FROM log n WHERE n.`key` = l.`key`)) o;
