-- The schema after all migrations, as the database describes it. Not to be edited:
-- go test ./migrations -run SchemaDump -update

CREATE TABLE `author` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `who` varbinary(512) NOT NULL,
  `impersonator` varbinary(512) NOT NULL,
  `verb` varbinary(64) NOT NULL,
  `subresource` varbinary(512) NOT NULL,
  `manager` varbinary(512) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `kept` (
  `prefix` varbinary(1024) NOT NULL,
  `lost` bigint NOT NULL,
  PRIMARY KEY (`prefix`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `lease` (
  `id` bigint NOT NULL,
  `ttl` bigint NOT NULL,
  `expires` bigint NOT NULL,
  PRIMARY KEY (`id`),
  KEY `lease_expires` (`expires`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `log` (
  `id` bigint NOT NULL AUTO_INCREMENT,
  `key` varbinary(1024) NOT NULL,
  `create_id` bigint NOT NULL,
  `deleted` tinyint(1) NOT NULL,
  `at` bigint NOT NULL,
  `value` longblob NOT NULL,
  `version` bigint DEFAULT NULL,
  `lease` bigint DEFAULT NULL,
  `author` int(11) DEFAULT NULL,
  `audit_id` varbinary(64) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `log_key_id` (`key`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `meta` (
  `name` varbinary(64) NOT NULL,
  `value` varbinary(255) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `past` (
  `id` bigint NOT NULL,
  `key` varbinary(1024) NOT NULL,
  `create_id` bigint NOT NULL,
  `deleted` tinyint(1) NOT NULL,
  `at` bigint NOT NULL,
  `until_id` bigint NOT NULL,
  `until_at` bigint NOT NULL,
  `expires` bigint NOT NULL,
  `author` int(11) DEFAULT NULL,
  `audit_id` varbinary(64) DEFAULT NULL,
  `value` longblob NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `past_key_id` (`key`,`id`),
  KEY `past_expires` (`expires`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

-- VIEW objects:
--     api_version longtext
--     kind longtext
--     namespace mediumtext
--     name mediumtext
--     resource_version bigint
--     created_at longtext
--     updated_at datetime
--     object longtext
--     key text

-- VIEW kv:
--     key varbinary
--     value longblob
--     create_revision bigint
--     mod_revision bigint
--     version bigint
--     lease bigint

-- VIEW history:
--     time datetime
--     who varchar
--     impersonator varchar
--     verb varchar
--     subresource varchar
--     manager varchar
--     action varchar
--     resource mediumtext
--     kind longtext
--     namespace mediumtext
--     name mediumtext
--     revision bigint
--     audit_id text
--     key text
