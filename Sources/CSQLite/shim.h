#ifndef KIZUNA_CSQLITE_SHIM_H
#define KIZUNA_CSQLITE_SHIM_H

#include <sqlite3.h>

// SQLITE_TRANSIENT and SQLITE_STATIC are casts of integers to function pointers, which Swift does not import.
static inline int kd_sqlite_bind_text_copied(sqlite3_stmt *statement, int index, const char *text, int length) {
  return sqlite3_bind_text(statement, index, text, length, SQLITE_TRANSIENT);
}
static inline int kd_sqlite_bind_text_borrowed(sqlite3_stmt *statement, int index, const char *text, int length) {
  return sqlite3_bind_text(statement, index, text, length, SQLITE_STATIC);
}
static inline int kd_sqlite_bind_blob_copied(sqlite3_stmt *statement, int index, const void *bytes, int length) {
  return sqlite3_bind_blob(statement, index, bytes, length, SQLITE_TRANSIENT);
}
// sqlite3_db_config is variadic.
static inline int kd_sqlite_db_config_int(sqlite3 *database, int option, int value, int *result) {
  return sqlite3_db_config(database, option, value, result);
}

// The first bytes of a file, by the handle that is open already: a second one would give up the locks on it when it is
// closed.
static inline int kd_sqlite_read_head(sqlite3 *database, void *bytes, int count) {
  sqlite3_file *file = 0;
  int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code != SQLITE_OK || !file || !file->pMethods) return SQLITE_ERROR;
  code = file->pMethods->xRead(file, bytes, count, 0);
  // What the file lacks is zero then.
  return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

#endif
