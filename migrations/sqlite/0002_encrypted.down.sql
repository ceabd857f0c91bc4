DROP VIEW IF EXISTS objects;

-- The current state, for people. A value is JSON text; it is cast because SQLite would
-- take a blob for its own binary JSON.
CREATE VIEW IF NOT EXISTS objects AS
SELECT json_extract(o.json, '$.apiVersion')                        AS api_version,
       json_extract(o.json, '$.kind')                              AS kind,
       coalesce(json_extract(o.json, '$.metadata.namespace'), '')  AS namespace,
       json_extract(o.json, '$.metadata.name')                     AS name,
       o.id                                                        AS resource_version,
       json_extract(o.json, '$.metadata.creationTimestamp')        AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.at / 1000.0, 'unixepoch')  AS updated_at,
       json_set(o.json, '$.metadata.resourceVersion', CAST(o.id AS TEXT)) AS object
FROM (SELECT l.id, l.at, CAST(l.value AS TEXT) AS json
      FROM log l
      WHERE l.deleted = 0
        AND l.id = (SELECT max(n.id) FROM log n WHERE n.key = l.key)) o;
