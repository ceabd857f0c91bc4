-- Raw keys, for the endpoint that speaks etcd's protocol. Rows of objects have neither version
-- nor lease. An added column changes no row, however large the table is.
ALTER TABLE log ADD COLUMN IF NOT EXISTS version bigint;
ALTER TABLE log ADD COLUMN IF NOT EXISTS lease bigint;

-- ttl: seconds. expires: Unix milliseconds of this server's clock.
CREATE TABLE IF NOT EXISTS lease (
    id      bigint PRIMARY KEY,
    ttl     bigint NOT NULL,
    expires bigint NOT NULL
);

CREATE INDEX IF NOT EXISTS lease_expires ON lease (expires);

-- kind: what the log is used for; the first to open it says so. lease_beat: when somebody last
-- watched over the leases.
INSERT INTO meta (name, value) SELECT 'kind', 'api' WHERE EXISTS (SELECT FROM log)
ON CONFLICT DO NOTHING;
INSERT INTO meta (name, value) VALUES ('lease_beat', '0')
ON CONFLICT DO NOTHING;

-- The current keys of an etcd endpoint, for people. Text cannot hold any bytes, so keys are kept
-- with each byte from 0x80 as the character of that number, 0x00 as two characters 1 and 0x01 as
-- the characters 1 and 2. Here bytes that are not ASCII are shown as \ooo in octal, and a
-- backslash is doubled.
CREATE OR REPLACE VIEW kv AS
SELECT replace(replace(encode(convert_to(l.key COLLATE "default", 'LATIN1'), 'escape'),
                       chr(1) || chr(1), '\000'), chr(1) || chr(2), chr(1)) AS key,
       l.value           AS value,
       l.create_id >> 22 AS create_revision,
       l.id >> 22        AS mod_revision,
       l.version         AS version,
       l.lease           AS lease
FROM log l
WHERE NOT l.deleted
  AND l.id = (SELECT max(n.id) FROM log n WHERE n.key = l.key)
  AND (SELECT value FROM meta WHERE name = 'kind') = 'etcd';
