PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE kine
			(
				id INTEGER PRIMARY KEY AUTOINCREMENT,
				name TEXT,
				created INTEGER,
				deleted INTEGER,
				create_revision INTEGER,
				prev_revision INTEGER,
				lease INTEGER,
				value BLOB,
				old_value BLOB
			);
INSERT INTO kine VALUES(1,'compact_rev_key',1,0,NULL,8,0,X'',NULL);
INSERT INTO kine VALUES(2,'/registry/health',1,0,NULL,0,0,X'7b226865616c7468223a2274727565227d',NULL);
INSERT INTO kine VALUES(4,'/registry/b',1,0,NULL,0,0,X'6200ff',NULL);
INSERT INTO kine VALUES(8,'/registry/a',0,0,3,5,0,X'7468726565',X'74776f');
INSERT INTO kine VALUES(9,'/registry/a',0,0,3,8,0,X'666f7572',X'7468726565');
INSERT INTO kine VALUES(10,'/registry/event',1,0,NULL,0,3600,X'736f6f6e',NULL);
INSERT INTO kine VALUES(11,'/registry/c',1,0,NULL,0,0,X'6331',NULL);
INSERT INTO kine VALUES(12,'/registry/c',0,1,11,11,0,NULL,X'6331');
INSERT INTO kine VALUES(13,'/registry/c',1,0,NULL,12,0,X'6332',NULL);
INSERT INTO kine VALUES(14,'/registry/b',0,0,4,4,0,NULL,X'6200ff');
INSERT INTO kine VALUES(15,'/registry/last',1,0,NULL,0,0,X'6c617374',NULL);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('kine',15);
CREATE INDEX kine_name_index ON kine (name);
CREATE INDEX kine_name_id_index ON kine (name,id);
CREATE INDEX kine_id_deleted_index ON kine (id,deleted);
CREATE INDEX kine_prev_revision_index ON kine (prev_revision);
CREATE UNIQUE INDEX kine_name_prev_revision_uindex ON kine (name, prev_revision);
CREATE INDEX kine_id_compact_rev_key_with_prev_revision_index ON kine(id, name, prev_revision) WHERE name != 'compact_rev_key' AND prev_revision != 0;
COMMIT;
