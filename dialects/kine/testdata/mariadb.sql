CREATE TABLE `kine` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `name` varchar(630) CHARACTER SET ascii COLLATE ascii_general_ci DEFAULT NULL,
  `created` int(11) DEFAULT NULL,
  `deleted` int(11) DEFAULT NULL,
  `create_revision` bigint(20) unsigned DEFAULT NULL,
  `prev_revision` bigint(20) unsigned DEFAULT NULL,
  `lease` int(11) DEFAULT NULL,
  `value` mediumblob DEFAULT NULL,
  `old_value` mediumblob DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `kine_name_prev_revision_uindex` (`name`,`prev_revision`),
  KEY `kine_name_index` (`name`),
  KEY `kine_name_id_index` (`name`,`id`),
  KEY `kine_id_deleted_index` (`id`,`deleted`),
  KEY `kine_prev_revision_index` (`prev_revision`)
) ENGINE=InnoDB AUTO_INCREMENT=108 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `kine` VALUES (3,'compact_rev_key',1,0,NULL,52,0,'',NULL);
INSERT INTO `kine` VALUES (10,'/registry/health',1,0,NULL,0,0,0x7B226865616C7468223A2274727565227D,NULL);
INSERT INTO `kine` VALUES (13,'gap-13',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (14,'gap-14',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (15,'gap-15',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (16,'gap-16',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (17,'gap-17',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (18,'gap-18',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (19,'gap-19',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (20,'gap-20',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (21,'gap-21',0,1,0,0,0,NULL,NULL);
INSERT INTO `kine` VALUES (24,'/registry/b',1,0,NULL,0,0,0x6200FF,NULL);
INSERT INTO `kine` VALUES (52,'/registry/a',0,0,17,31,0,0x7468726565,0x74776F);
INSERT INTO `kine` VALUES (59,'/registry/a',0,0,17,52,0,0x666F7572,0x7468726565);
INSERT INTO `kine` VALUES (66,'/registry/event',1,0,NULL,0,3600,0x736F6F6E,NULL);
INSERT INTO `kine` VALUES (73,'/registry/c',1,0,NULL,0,0,0x6331,NULL);
INSERT INTO `kine` VALUES (80,'/registry/c',0,1,73,73,0,NULL,0x6331);
INSERT INTO `kine` VALUES (87,'/registry/c',1,0,NULL,80,0,0x6332,NULL);
INSERT INTO `kine` VALUES (94,'/registry/b',0,0,24,24,0,NULL,0x6200FF);
INSERT INTO `kine` VALUES (101,'/registry/last',1,0,NULL,0,0,0x6C617374,NULL);
