-- The view shows encrypted objects, too: what their keys say, and null for the rest. A value
-- that is not encrypted begins with a brace.
DROP VIEW IF EXISTS objects;

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
