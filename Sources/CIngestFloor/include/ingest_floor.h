#ifndef KIZUNA_INGEST_FLOOR_H
#define KIZUNA_INGEST_FLOOR_H

#include <stddef.h>
#include <stdint.h>

// The least code that does a first pull in C, as a measure for the replica: libcurl downloads a page, cJSON parses it,
// prepared statements insert its rows, one transaction a page, until a page says that it is the last.

struct kd_ingest_floor {
  // What is asked. The body is the head, the cursor of the page before (first "0"), the tail.
  const char *url;
  const char *const *headers;
  size_t header_count;
  const char *body_head;
  const char *body_tail;
  // A path where there is no file yet, and the script that makes it ready for `insert`.
  const char *database;
  const char *script;
  // Parameters: the key, then the columns in their order.
  const char *insert;
  const char *const *columns;
  size_t column_count;

  // What came of it.
  int64_t rows;
  int64_t pages;
  int64_t bytes;
  char failure[256];
};

// Whether the system has cJSON. It is loaded when it is first needed, so that nothing but this measurement depends on it.
int kd_ingest_floor_has_cjson(void);

// Blocks. Returns 0, or -1 with a sentence in `failure`.
int kd_ingest_floor_run(struct kd_ingest_floor *floor);

#endif
