#include "ingest_floor.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The public structure and types of cJSON 1.7 (cJSON.h), whose library is loaded at run time.
typedef struct cJSON {
  struct cJSON *next;
  struct cJSON *prev;
  struct cJSON *child;
  int type;
  char *valuestring;
  int valueint;
  double valuedouble;
  char *string;
} cJSON;

enum { json_false = 1 << 0, json_true = 1 << 1, json_number = 1 << 3, json_string = 1 << 4 };

static struct {
  int is_loaded;
  cJSON *(*parse)(const char *bytes, size_t length);
  void (*release)(cJSON *item);
  cJSON *(*member)(const cJSON *object, const char *name);
} json;

int kd_ingest_floor_has_cjson(void) {
  if (!json.is_loaded) {
    void *library = dlopen("libcjson.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    // POSIX lets data pointers of dlsym be called; C does not know the cast.
    *(void **)&json.parse = dlsym(library, "cJSON_ParseWithLength");
    *(void **)&json.release = dlsym(library, "cJSON_Delete");
    *(void **)&json.member = dlsym(library, "cJSON_GetObjectItemCaseSensitive");
    json.is_loaded = 1;
  }
  return json.parse && json.release && json.member;
}

struct buffer {
  char *bytes;
  size_t count;
  size_t capacity;
};

static size_t append(char *bytes, size_t size, size_t count, void *context) {
  struct buffer *buffer = context;
  size_t added = size * count;
  if (buffer->count + added > buffer->capacity) {
    size_t capacity = (buffer->count + added) * 2;
    char *grown = realloc(buffer->bytes, capacity);
    if (!grown) return 0;
    buffer->bytes = grown;
    buffer->capacity = capacity;
  }
  memcpy(buffer->bytes + buffer->count, bytes, added);
  buffer->count += added;
  return added;
}

static int fail(struct kd_ingest_floor *floor, const char *what, const char *why) {
  snprintf(floor->failure, sizeof floor->failure, "%s: %s", what, why);
  return -1;
}

static void bind_value(sqlite3_stmt *insert, int index, const cJSON *value) {
  switch (value ? value->type & 0xff : 0) {
  case json_string: sqlite3_bind_text(insert, index, value->valuestring, -1, SQLITE_STATIC); break;
  case json_number: sqlite3_bind_double(insert, index, value->valuedouble); break;
  case json_true: sqlite3_bind_int(insert, index, 1); break;
  case json_false: sqlite3_bind_int(insert, index, 0); break;
  default: sqlite3_bind_null(insert, index);
  }
}

// One transaction.
static int store(struct kd_ingest_floor *floor, sqlite3 *database, sqlite3_stmt *insert, const cJSON *rows) {
  if (sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL)) return fail(floor, "BEGIN", sqlite3_errmsg(database));
  for (const cJSON *item = rows ? rows->child : NULL; item; item = item->next) {
    const cJSON *row = json.member(item, "row");
    bind_value(insert, 1, json.member(item, "pk"));
    for (size_t i = 0; i < floor->column_count; i++) bind_value(insert, (int)i + 2, json.member(row, floor->columns[i]));
    int result = sqlite3_step(insert);
    sqlite3_reset(insert);
    if (result != SQLITE_DONE) return fail(floor, "INSERT", sqlite3_errmsg(database));
    floor->rows += 1;
  }
  if (sqlite3_exec(database, "COMMIT", NULL, NULL, NULL)) return fail(floor, "COMMIT", sqlite3_errmsg(database));
  return 0;
}

static int pull(struct kd_ingest_floor *floor, CURL *curl, struct buffer *answer, sqlite3 *database, sqlite3_stmt *insert) {
  char cursor[512] = "0";
  for (int has_more = 1; has_more;) {
    size_t size = strlen(floor->body_head) + strlen(cursor) + strlen(floor->body_tail) + 1;
    char *body = malloc(size);
    if (!body) return fail(floor, "request", "out of memory");
    snprintf(body, size, "%s%s%s", floor->body_head, cursor, floor->body_tail);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)(size - 1));
    answer->count = 0;
    CURLcode result = curl_easy_perform(curl);
    free(body);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK) return fail(floor, "request", curl_easy_strerror(result));
    if (status != 200) return fail(floor, "request", "the status is not 200");
    floor->bytes += (int64_t)answer->count;
    floor->pages += 1;

    cJSON *page = json.parse(answer->bytes, answer->count);
    if (!page) return fail(floor, "answer", "not JSON");
    const cJSON *next = json.member(page, "cursor");
    const cJSON *more = json.member(page, "has_more");
    has_more = more && (more->type & 0xff) == json_true;
    if (next && next->valuestring) snprintf(cursor, sizeof cursor, "%s", next->valuestring);
    int stored = store(floor, database, insert, json.member(page, "rows"));
    json.release(page);
    if (stored) return stored;
  }
  return 0;
}

static int open_and_pull(struct kd_ingest_floor *floor, CURL *curl, struct buffer *answer) {
  sqlite3 *database = NULL;
  sqlite3_stmt *insert = NULL;
  int result = 0;
  if (sqlite3_open_v2(floor->database, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) ||
      sqlite3_exec(database, floor->script, NULL, NULL, NULL) ||
      sqlite3_prepare_v3(database, floor->insert, -1, SQLITE_PREPARE_PERSISTENT, &insert, NULL)) {
    result = fail(floor, "database", database ? sqlite3_errmsg(database) : "out of memory");
  } else {
    result = pull(floor, curl, answer, database, insert);
  }
  sqlite3_finalize(insert);
  sqlite3_close(database);
  return result;
}

int kd_ingest_floor_run(struct kd_ingest_floor *floor) {
  floor->rows = floor->pages = floor->bytes = 0;
  floor->failure[0] = 0;
  if (!kd_ingest_floor_has_cjson()) return fail(floor, "cJSON", "not installed");
  curl_global_init(CURL_GLOBAL_ALL);
  CURL *curl = curl_easy_init();
  if (!curl) return fail(floor, "libcurl", "out of memory");
  struct curl_slist *headers = NULL;
  for (size_t i = 0; i < floor->header_count; i++) headers = curl_slist_append(headers, floor->headers[i]);
  struct buffer answer = {0};
  curl_easy_setopt(curl, CURLOPT_URL, floor->url);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_POST, 1L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
  int result = open_and_pull(floor, curl, &answer);
  curl_easy_cleanup(curl);
  curl_slist_free_all(headers);
  free(answer.bytes);
  return result;
}
