DROP VIEW IF EXISTS kv;
DROP TABLE IF EXISTS lease;
DELETE FROM meta WHERE name IN ('kind', 'lease_beat');
ALTER TABLE log DROP COLUMN lease, DROP COLUMN version;
