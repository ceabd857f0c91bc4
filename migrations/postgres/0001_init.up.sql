-- One row is one change; its id is the revision. The column is a plain number, not an
-- identity or a sequence: ids are given explicitly under the write lock, as one more than
-- the highest id or the floor, so that a cached, restored or stepped sequence cannot
-- disturb their order.
CREATE TABLE IF NOT EXISTS log (
    id        bigint  PRIMARY KEY,
    key       text    COLLATE "C" NOT NULL,
    create_id bigint  NOT NULL,
    deleted   boolean NOT NULL,
    at        bigint  NOT NULL,
    value     bytea   NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE UNIQUE INDEX IF NOT EXISTS log_key_id ON log (key, id);

CREATE TABLE IF NOT EXISTS meta (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
) WITH (fillfactor = 50);

-- floor: revisions below it are compacted; its row is the write lock. swept: all rows up
-- to here were looked at; its row is the compactor's lock.
INSERT INTO meta (name, value) VALUES
    ('format', '1'),
    ('floor', '0'),
    ('swept', '0'),
    ('cluster_id', gen_random_uuid()::text)
ON CONFLICT DO NOTHING;

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
