BEGIN TRANSACTION;
CREATE TABLE _kizunasync_absent(tbl TEXT NOT NULL, pk TEXT NOT NULL, cols TEXT NOT NULL,
  PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
CREATE TABLE _kizunasync_capture(seq INTEGER PRIMARY KEY, tbl, op, grp, at, n0, o0, n1, o1, n2, o2, n3, o3);
INSERT INTO "_kizunasync_capture" VALUES(6,'notes','i',NULL,2.46137560397295141584e+06,'n',NULL,'00000000-0000-4000-8000-a10000000001',NULL,'note',NULL,NULL,NULL);
INSERT INTO "_kizunasync_capture" VALUES(7,'todos','i',NULL,2.46137560397868044681e+06,'f',NULL,NULL,NULL,'new',NULL,1,NULL);
INSERT INTO "_kizunasync_capture" VALUES(8,'todos','i',NULL,2.46137560397869208832e+06,'b',NULL,NULL,NULL,'again',NULL,2,NULL);
INSERT INTO "_kizunasync_capture" VALUES(9,'','b','g',2.46137560397869208832e+06,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "_kizunasync_capture" VALUES(10,'todos','u',NULL,2.46137560397869208832e+06,'c','c','00000000-0000-4000-8000-a10000000001','00000000-0000-4000-8000-a10000000001','grouped','old c',3,3);
INSERT INTO "_kizunasync_capture" VALUES(11,'todos','d',NULL,2.46137560397869208832e+06,NULL,'d',NULL,'00000000-0000-4000-8000-a10000000001',NULL,'old d',NULL,4);
INSERT INTO "_kizunasync_capture" VALUES(12,'','b',NULL,2.46137560397869208832e+06,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "_kizunasync_capture" VALUES(13,'todos','u',NULL,2.46137560397870372983e+06,'e','e','00000000-0000-4000-8000-a10000000001','00000000-0000-4000-8000-a10000000001','alone','old e',5,5);
INSERT INTO "_kizunasync_capture" VALUES(14,'','b','g',2.46137560397870372983e+06,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "_kizunasync_capture" VALUES(15,'todos','u',NULL,2.46137560397870372983e+06,'e','e','00000000-0000-4000-8000-a10000000001','00000000-0000-4000-8000-a10000000001','alone','alone',50,5);
INSERT INTO "_kizunasync_capture" VALUES(16,'','b',NULL,2.46137560397870372983e+06,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "_kizunasync_capture" VALUES(17,'notes','u',NULL,2.46137560397871537135e+06,'n','n','00000000-0000-4000-8000-a10000000001','00000000-0000-4000-8000-a10000000001','held','note',NULL,NULL);
CREATE TABLE _kizunasync_ctl(
  id INTEGER PRIMARY KEY CHECK (id = 1), applying INTEGER NOT NULL, generation INTEGER NOT NULL);
INSERT INTO "_kizunasync_ctl" VALUES(1,0,0);
CREATE TABLE _kizunasync_displaced(base_seq, tbl, c0, c1, c2, c3);
INSERT INTO "_kizunasync_displaced" VALUES(6,'todos','a','00000000-0000-4000-8000-a10000000001','old a',1);
INSERT INTO "_kizunasync_displaced" VALUES(7,'todos','b','00000000-0000-4000-8000-a10000000001','old b',2);
INSERT INTO "_kizunasync_displaced" VALUES(17,'todos','b',NULL,'again',2);
CREATE TABLE _kizunasync_group(id);
CREATE TABLE _kizunasync_image(tbl TEXT NOT NULL, pk TEXT NOT NULL, row TEXT, tomb_seq INTEGER,
  PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
CREATE TABLE _kizunasync_kinds(
  tbl TEXT NOT NULL, col TEXT NOT NULL, slot INTEGER NOT NULL, kind TEXT, firm INTEGER NOT NULL DEFAULT 0,
  late INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (tbl, col)) WITHOUT ROWID;
INSERT INTO "_kizunasync_kinds" VALUES('notes','id',0,'text',1,0);
INSERT INTO "_kizunasync_kinds" VALUES('notes','owner_id',1,'text',1,0);
INSERT INTO "_kizunasync_kinds" VALUES('notes','text',2,'text',1,0);
INSERT INTO "_kizunasync_kinds" VALUES('todos','id',0,'text',1,0);
INSERT INTO "_kizunasync_kinds" VALUES('todos','n',3,'number',1,0);
INSERT INTO "_kizunasync_kinds" VALUES('todos','owner_id',1,'text',1,0);
INSERT INTO "_kizunasync_kinds" VALUES('todos','title',2,'text',1,0);
CREATE TABLE _kizunasync_meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO "_kizunasync_meta" VALUES('client_id','fe6941f6-652e-49b0-9e85-e28529fa1e96');
INSERT INTO "_kizunasync_meta" VALUES('covered','[{"params":{"owner_id":"00000000-0000-4000-8000-a10000000001"},"table":"notes"},{"params":{"owner_id":"00000000-0000-4000-8000-a10000000001"},"table":"todos"}]');
INSERT INTO "_kizunasync_meta" VALUES('cursor','6');
INSERT INTO "_kizunasync_meta" VALUES('declared:notes','["CREATE TABLE \"notes\"(\"id\" NOT NULL DEFAULT (lower(hex(randomblob(4)) || ''-'' || hex(randomblob(2)) || ''-4'' || substr(hex(randomblob(2)), 2) || ''-8'' || substr(hex(randomblob(2)), 2) || ''-'' || hex(randomblob(6)))), \"owner_id\", text, PRIMARY KEY (\"id\"))"]');
INSERT INTO "_kizunasync_meta" VALUES('declared:todos','["CREATE TABLE \"todos\"(\"id\" NOT NULL DEFAULT (lower(hex(randomblob(4)) || ''-'' || hex(randomblob(2)) || ''-4'' || substr(hex(randomblob(2)), 2) || ''-8'' || substr(hex(randomblob(2)), 2) || ''-'' || hex(randomblob(6)))), \"owner_id\", title, n, PRIMARY KEY (\"id\"))","CREATE UNIQUE INDEX by_n on todos(n)"]');
INSERT INTO "_kizunasync_meta" VALUES('harvested',6);
INSERT INTO "_kizunasync_meta" VALUES('journal','f8f38650-d5ac-4409-95c3-82c4229de365');
INSERT INTO "_kizunasync_meta" VALUES('last_mutation_id','2050fe09-155c-4a06-9f8b-daee6a95f249');
INSERT INTO "_kizunasync_meta" VALUES('last_sync',1796092183468);
INSERT INTO "_kizunasync_meta" VALUES('owner','00000000-0000-4000-8000-a10000000001');
INSERT INTO "_kizunasync_meta" VALUES('swept_at',1796092183370);
INSERT INTO "_kizunasync_meta" VALUES('version',2);
CREATE TABLE _kizunasync_outbox(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, mutation_id TEXT NOT NULL UNIQUE, tbl TEXT NOT NULL, pk TEXT NOT NULL,
  op TEXT NOT NULL, columns TEXT NOT NULL, transforms TEXT, precondition TEXT, hlc TEXT, grp,
  state INTEGER NOT NULL DEFAULT 0, captured INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, error TEXT,
  at INTEGER NOT NULL);
CREATE TABLE _kizunasync_overwrites(
  id INTEGER PRIMARY KEY AUTOINCREMENT, tbl TEXT NOT NULL, pk TEXT NOT NULL, col TEXT NOT NULL,
  winner TEXT NOT NULL, winner_seq TEXT NOT NULL, mode TEXT NOT NULL, loser TEXT NOT NULL, at INTEGER NOT NULL,
  dismissed INTEGER NOT NULL DEFAULT 0, UNIQUE (tbl, pk, col, winner, winner_seq));
CREATE TABLE _kizunasync_pages(n INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE _kizunasync_parked(tbl TEXT NOT NULL, pk TEXT NOT NULL, row TEXT NOT NULL, error TEXT NOT NULL,
  PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
CREATE TABLE _kizunasync_pushed(n INTEGER PRIMARY KEY, mutation_id TEXT NOT NULL UNIQUE);
INSERT INTO "_kizunasync_pushed" VALUES(1,'152faea1-9f1c-4b55-ae06-f2f04dcd1fe8');
INSERT INTO "_kizunasync_pushed" VALUES(2,'a985019d-d6b4-4d74-a3e7-02177765d56a');
INSERT INTO "_kizunasync_pushed" VALUES(3,'89d4569a-818d-4f27-a3b8-27dcb63d4630');
INSERT INTO "_kizunasync_pushed" VALUES(4,'4040b056-eadc-4aea-bcf6-e557cb78946e');
INSERT INTO "_kizunasync_pushed" VALUES(5,'31ee9668-a746-499e-8352-15a62b627a54');
INSERT INTO "_kizunasync_pushed" VALUES(6,'2050fe09-155c-4a06-9f8b-daee6a95f249');
CREATE TABLE _kizunasync_rejections(
  n INTEGER PRIMARY KEY, mutation_id TEXT NOT NULL UNIQUE, tbl TEXT NOT NULL, pk TEXT NOT NULL,
  kind TEXT NOT NULL, reason TEXT NOT NULL, members TEXT NOT NULL, server_row TEXT, at INTEGER NOT NULL,
  dismissed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE _kizunasync_tables(name TEXT PRIMARY KEY, managed INTEGER NOT NULL, slots INTEGER NOT NULL)
  WITHOUT ROWID;
INSERT INTO "_kizunasync_tables" VALUES('notes',1,3);
INSERT INTO "_kizunasync_tables" VALUES('todos',1,4);
CREATE TABLE "notes"("id" NOT NULL DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))), "owner_id", text, PRIMARY KEY ("id"));
INSERT INTO "notes" VALUES('n','00000000-0000-4000-8000-a10000000001','held');
CREATE TABLE "todos"("id" NOT NULL DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))), "owner_id", title, n, PRIMARY KEY ("id"));
INSERT INTO "todos" VALUES('c','00000000-0000-4000-8000-a10000000001','grouped',3);
INSERT INTO "todos" VALUES('e','00000000-0000-4000-8000-a10000000001','alone',50);
INSERT INTO "todos" VALUES('f',NULL,'new',1);
INSERT INTO "todos" VALUES('b',NULL,'again',2);
CREATE TRIGGER _kizunasync_group_begins AFTER INSERT ON _kizunasync_group
  BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, grp)
    VALUES ('', 'b', julianday(), (SELECT id FROM _kizunasync_group)); END;
CREATE TRIGGER _kizunasync_group_changes AFTER UPDATE ON _kizunasync_group
  BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, grp)
    VALUES ('', 'b', julianday(), (SELECT id FROM _kizunasync_group)); END;
CREATE TRIGGER _kizunasync_group_is_over AFTER DELETE ON _kizunasync_group
  BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, grp)
    VALUES ('', 'b', julianday(), (SELECT id FROM _kizunasync_group)); END;
CREATE INDEX _kizunasync_outbox_key ON _kizunasync_outbox(tbl, pk);
CREATE TRIGGER "_kizunasync_notes_before_insert" BEFORE INSERT ON "notes" WHEN (NEW."id" COLLATE "BINARY" IN (SELECT "id" FROM "notes")) AND (SELECT applying FROM _kizunasync_ctl) = 0 BEGIN DELETE FROM _kizunasync_displaced WHERE base_seq = coalesce((SELECT max(seq) FROM _kizunasync_capture), 0) AND rowid BETWEEN (SELECT max(rowid) FROM _kizunasync_displaced) - 24 AND (SELECT max(rowid) FROM _kizunasync_displaced) - 8; INSERT INTO _kizunasync_displaced(base_seq, tbl, c0, c1, c2) SELECT coalesce((SELECT max(seq) FROM _kizunasync_capture), 0), 'notes', t."id", t."owner_id", t."text" FROM "notes" t WHERE ((t."id" COLLATE "BINARY" = NEW."id")); END;
CREATE TRIGGER "_kizunasync_notes_after_insert" AFTER INSERT ON "notes" BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, n0, n1, n2) VALUES ('notes', CASE WHEN ((NEW."id" COLLATE BINARY > '' AND NEW."id" < x'' OR typeof(NEW."id") = 'integer')) OR NOT (SELECT applying FROM _kizunasync_ctl) = 0 THEN 'i' ELSE raise(ABORT, 'the key of notes (id) must be text or an integer, and not empty') END, julianday(), NEW."id", NEW."owner_id", NEW."text"); END;
CREATE TRIGGER "_kizunasync_notes_before_update" BEFORE UPDATE ON "notes" WHEN (NEW."id" IS NOT OLD."id") AND EXISTS (SELECT 1 FROM "notes" t WHERE ((t."id" COLLATE "BINARY" = NEW."id")) AND NOT (t."id" IS OLD."id")) AND (SELECT applying FROM _kizunasync_ctl) = 0 BEGIN DELETE FROM _kizunasync_displaced WHERE base_seq = coalesce((SELECT max(seq) FROM _kizunasync_capture), 0) AND rowid BETWEEN (SELECT max(rowid) FROM _kizunasync_displaced) - 24 AND (SELECT max(rowid) FROM _kizunasync_displaced) - 8; INSERT INTO _kizunasync_displaced(base_seq, tbl, c0, c1, c2) SELECT coalesce((SELECT max(seq) FROM _kizunasync_capture), 0), 'notes', t."id", t."owner_id", t."text" FROM "notes" t WHERE ((t."id" COLLATE "BINARY" = NEW."id")) AND NOT (t."id" IS OLD."id"); END;
CREATE TRIGGER "_kizunasync_notes_after_update" AFTER UPDATE ON "notes" BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, n0, n1, n2, o0, o1, o2) VALUES ('notes', CASE WHEN (NEW."id" IS OLD."id") THEN 'u' WHEN ((NEW."id" COLLATE BINARY > '' AND NEW."id" < x'' OR typeof(NEW."id") = 'integer')) OR NOT (SELECT applying FROM _kizunasync_ctl) = 0 THEN 'm' ELSE raise(ABORT, 'the key of notes (id) must be text or an integer, and not empty') END, julianday(), NEW."id", NEW."owner_id", NEW."text", OLD."id", OLD."owner_id", OLD."text"); END;
CREATE TRIGGER "_kizunasync_notes_after_delete" AFTER DELETE ON "notes" BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, o0, o1, o2) VALUES ('notes', 'd', julianday(), OLD."id", OLD."owner_id", OLD."text"); END;
CREATE TRIGGER "_kizunasync_todos_after_insert" AFTER INSERT ON "todos" BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, n0, n1, n2, n3) VALUES ('todos', CASE WHEN ((NEW."id" COLLATE BINARY > '' AND NEW."id" < x'' OR typeof(NEW."id") = 'integer')) OR NOT (SELECT applying FROM _kizunasync_ctl) = 0 THEN 'i' ELSE raise(ABORT, 'the key of todos (id) must be text or an integer, and not empty') END, julianday(), NEW."id", NEW."owner_id", NEW."title", NEW."n"); END;
CREATE TRIGGER "_kizunasync_todos_after_update" AFTER UPDATE ON "todos" BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, n0, n1, n2, n3, o0, o1, o2, o3) VALUES ('todos', CASE WHEN (NEW."id" IS OLD."id") THEN 'u' WHEN ((NEW."id" COLLATE BINARY > '' AND NEW."id" < x'' OR typeof(NEW."id") = 'integer')) OR NOT (SELECT applying FROM _kizunasync_ctl) = 0 THEN 'm' ELSE raise(ABORT, 'the key of todos (id) must be text or an integer, and not empty') END, julianday(), NEW."id", NEW."owner_id", NEW."title", NEW."n", OLD."id", OLD."owner_id", OLD."title", OLD."n"); END;
CREATE TRIGGER "_kizunasync_todos_after_delete" AFTER DELETE ON "todos" BEGIN INSERT INTO _kizunasync_capture(tbl, op, at, o0, o1, o2, o3) VALUES ('todos', 'd', julianday(), OLD."id", OLD."owner_id", OLD."title", OLD."n"); END;
CREATE UNIQUE INDEX by_n on todos(n);
CREATE TRIGGER "_kizunasync_todos_before_insert" BEFORE INSERT ON "todos" WHEN (NEW."n" COLLATE "BINARY" IN (SELECT "n" FROM "todos") OR NEW."id" COLLATE "BINARY" IN (SELECT "id" FROM "todos")) AND (SELECT applying FROM _kizunasync_ctl) = 0 BEGIN DELETE FROM _kizunasync_displaced WHERE base_seq = coalesce((SELECT max(seq) FROM _kizunasync_capture), 0) AND rowid BETWEEN (SELECT max(rowid) FROM _kizunasync_displaced) - 24 AND (SELECT max(rowid) FROM _kizunasync_displaced) - 8; INSERT INTO _kizunasync_displaced(base_seq, tbl, c0, c1, c2, c3) SELECT coalesce((SELECT max(seq) FROM _kizunasync_capture), 0), 'todos', t."id", t."owner_id", t."title", t."n" FROM "todos" t WHERE ((t."n" COLLATE "BINARY" = NEW."n") OR (t."id" COLLATE "BINARY" = NEW."id")); END;
CREATE TRIGGER "_kizunasync_todos_before_update" BEFORE UPDATE ON "todos" WHEN (NEW."id" IS NOT OLD."id" OR NEW."n" IS NOT OLD."n") AND EXISTS (SELECT 1 FROM "todos" t WHERE ((t."n" COLLATE "BINARY" = NEW."n") OR (t."id" COLLATE "BINARY" = NEW."id")) AND NOT (t."id" IS OLD."id")) AND (SELECT applying FROM _kizunasync_ctl) = 0 BEGIN DELETE FROM _kizunasync_displaced WHERE base_seq = coalesce((SELECT max(seq) FROM _kizunasync_capture), 0) AND rowid BETWEEN (SELECT max(rowid) FROM _kizunasync_displaced) - 24 AND (SELECT max(rowid) FROM _kizunasync_displaced) - 8; INSERT INTO _kizunasync_displaced(base_seq, tbl, c0, c1, c2, c3) SELECT coalesce((SELECT max(seq) FROM _kizunasync_capture), 0), 'todos', t."id", t."owner_id", t."title", t."n" FROM "todos" t WHERE ((t."n" COLLATE "BINARY" = NEW."n") OR (t."id" COLLATE "BINARY" = NEW."id")) AND NOT (t."id" IS OLD."id"); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('_kizunasync_outbox',6);
COMMIT;
