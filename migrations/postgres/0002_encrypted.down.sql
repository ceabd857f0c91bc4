DROP VIEW IF EXISTS objects;

-- The current state, for people. Postgres cannot have a NUL in text and fails at its escape
-- in JSON; it is shown as U+FFFD.
CREATE OR REPLACE VIEW objects AS
SELECT o.json ->> 'apiVersion'                               AS api_version,
       o.json ->> 'kind'                                     AS kind,
       coalesce(o.json #>> '{metadata,namespace}', '')       AS namespace,
       o.json #>> '{metadata,name}'                          AS name,
       o.id                                                  AS resource_version,
       (o.json #>> '{metadata,creationTimestamp}')::timestamptz AS created_at,
       to_timestamp(o.at / 1000.0)                           AS updated_at,
       o.json                                                AS object
FROM (SELECT l.id, l.at,
             regexp_replace(replace(convert_from(l.value, 'UTF8'), '\u0000', '\ufffd'), '"metadata":\{',
                            '"metadata":{"resourceVersion":"' || l.id || '",')::json AS json
      FROM log l
      WHERE NOT l.deleted
        AND l.id = (SELECT max(n.id) FROM log n WHERE n.key = l.key)) o;
