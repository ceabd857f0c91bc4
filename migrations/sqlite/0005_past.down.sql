DROP VIEW IF EXISTS history;

-- The changes that are kept, for people.
CREATE VIEW history AS
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', h.at / 1000.0, 'unixepoch') AS time,
       a.who                                                     AS who,
       a.impersonator                                            AS impersonator,
       a.verb                                                    AS verb,
       a.subresource                                             AS subresource,
       a.manager                                                 AS manager,
       CASE WHEN h.deleted = 1 THEN 'deleted' WHEN h.create_id = h.id THEN 'created' ELSE 'changed' END AS action,
       substr(h.rest, 1, instr(h.rest, '/') - 1) ||
           CASE h.grp WHEN 'core' THEN '' ELSE '.' || h.grp END  AS resource,
       CASE WHEN substr(h.value, 1, 1) = x'7B' THEN json_extract(CAST(h.value AS TEXT), '$.kind') END AS kind,
       CASE instr(h.path, '/') WHEN 0 THEN '' ELSE substr(h.path, 1, instr(h.path, '/') - 1) END AS namespace,
       substr(h.path, instr(h.path, '/') + 1)                    AS name,
       h.id                                                      AS revision,
       CASE WHEN length(h.audit_id) = 16 THEN
           lower(substr(hex(h.audit_id), 1, 8) || '-' || substr(hex(h.audit_id), 9, 4) || '-' ||
                 substr(hex(h.audit_id), 13, 4) || '-' || substr(hex(h.audit_id), 17, 4) || '-' ||
                 substr(hex(h.audit_id), 21))
       ELSE rtrim(CAST(h.audit_id AS TEXT), ' ') END             AS audit_id,
       h.key                                                     AS key
FROM (SELECT k.*, substr(k.rest, instr(k.rest, '/') + 1) AS path
      FROM (SELECT l.*,
                   substr(l.key, 11, instr(substr(l.key, 11), '/') - 1) AS grp,
                   substr(substr(l.key, 11), instr(substr(l.key, 11), '/') + 1) AS rest
            FROM log l
            WHERE l.key LIKE '/registry/%/%/%'
              AND (SELECT value FROM meta WHERE name = 'kind') <> 'etcd') k) h
LEFT JOIN author a ON a.id = h.author;

DROP TABLE IF EXISTS past;
DROP TABLE IF EXISTS kept;
