-- The view shows encrypted objects, too: what their keys say, and null for the rest. A value
-- that is not encrypted begins with a brace.
CREATE OR REPLACE VIEW objects AS
SELECT o.json ->> 'apiVersion'                               AS api_version,
       o.json ->> 'kind'                                     AS kind,
       CASE split_part(o.key, '/', 6) WHEN '' THEN '' ELSE split_part(o.key, '/', 5) END AS namespace,
       CASE split_part(o.key, '/', 6) WHEN '' THEN split_part(o.key, '/', 5) ELSE split_part(o.key, '/', 6) END AS name,
       o.id                                                  AS resource_version,
       (o.json #>> '{metadata,creationTimestamp}')::timestamptz AS created_at,
       to_timestamp(o.at / 1000.0)                           AS updated_at,
       o.json                                                AS object,
       o.key                                                 AS key
FROM (SELECT l.id, l.at, l.key COLLATE "default" AS key,
             CASE WHEN substring(l.value FROM 1 FOR 1) = '\x7b'::bytea THEN
                 regexp_replace(replace(convert_from(l.value, 'UTF8'), '\u0000', '\ufffd'), '"metadata":\{',
                                '"metadata":{"resourceVersion":"' || l.id || '",')::json
             END AS json
      FROM log l
      WHERE NOT l.deleted
        AND l.id = (SELECT max(n.id) FROM log n WHERE n.key = l.key)) o;
