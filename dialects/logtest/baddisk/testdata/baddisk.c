/* An extension of SQLite with a file system in front of the real one. Its SQL functions make reads, writes
** and syncs fail, and keep beside the files what they were when they were last synced. */
#include "sqlite3ext.h"
SQLITE_EXTENSION_INIT1
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  sqlite3_file base;
  const char *path; /* SQLite keeps it for as long as the file is open; 0: a temporary file */
  sqlite3_file *real;
} File;

static sqlite3_vfs disk, *under;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows, and all changes of files */
static char op, suffix[1000];                            /* what fails: r, w, s or t of files with that ending */
static int code, hits;                                   /* with which error; how often it has */
static char watched[1000];                               /* database whose synced form is kept */
static int held;                                         /* changes of files wait while it is set */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

/* enter takes the lock for a change of a file. */
static void enter(void) {
  pthread_mutex_lock(&lock);
  while (held) pthread_cond_wait(&released, &lock);
}

#define REAL(f) (((File *)(f))->real)

static int ends_with(const char *path) {
  size_t n = path ? strlen(path) : 0, m = strlen(suffix);
  return n >= m && strcmp(path + n - m, suffix) == 0;
}

/* failing returns the error that an operation has to have; 0: none. */
static int failing(sqlite3_file *f, char what) {
  if (op != what || !ends_with(((File *)f)->path)) return SQLITE_OK;
  hits++;
  return code;
}

/* unsynced is the part of a watched file that was written since it was last synced: of the database, and of
** its write-ahead log. All connections write to the same files. */
static struct { sqlite3_int64 from, to; } unsynced[2];

static int is_log(sqlite3_file *f) {
  size_t n = strlen(watched);
  return strncmp(((File *)f)->path, watched, n) == 0 && strcmp(((File *)f)->path + n, "-wal") == 0;
}

static int is_watched(sqlite3_file *f) {
  const char *path = ((File *)f)->path;
  return watched[0] && path && (strcmp(path, watched) == 0 || is_log(f));
}

static void note(sqlite3_file *f, sqlite3_int64 from, sqlite3_int64 to) {
  if (!is_watched(f)) return;
  int i = is_log(f);
  if (unsynced[i].to == 0 || from < unsynced[i].from) unsynced[i].from = from;
  if (to > unsynced[i].to) unsynced[i].to = to;
}

/* keep brings the synced form of a watched file up to date. */
static int keep(sqlite3_file *f) {
  static char buffer[1 << 16];
  char name[1100];
  int i = is_log(f), rc;
  sqlite3_int64 size, at;
  snprintf(name, sizeof name, "%s.synced", ((File *)f)->path);
  FILE *to = fopen(name, "r+b");
  if (!to) { /* the file may have had another name before */
    to = fopen(name, "w+b");
    unsynced[i].from = 0, unsynced[i].to = (sqlite3_int64)1 << 40;
  }
  at = unsynced[i].from;
  rc = to ? REAL(f)->pMethods->xFileSize(REAL(f), &size) : SQLITE_CANTOPEN;
  if (rc == SQLITE_OK && fseek(to, at, SEEK_SET)) rc = SQLITE_IOERR;
  while (rc == SQLITE_OK && at < unsynced[i].to && at < size) {
    sqlite3_int64 left = (unsynced[i].to < size ? unsynced[i].to : size) - at;
    int n = left < (sqlite3_int64)sizeof buffer ? (int)left : (int)sizeof buffer;
    rc = REAL(f)->pMethods->xRead(REAL(f), buffer, n, at);
    if (rc == SQLITE_OK && fwrite(buffer, 1, n, to) != (size_t)n) rc = SQLITE_FULL;
    at += n;
  }
  if (to && (fflush(to) || ftruncate(fileno(to), size))) rc = SQLITE_FULL;
  if (to) fclose(to);
  if (rc == SQLITE_OK) unsynced[i].from = unsynced[i].to = 0;
  return rc;
}

static int x_close(sqlite3_file *f) {
  int rc = REAL(f)->pMethods->xClose(REAL(f));
  sqlite3_free(REAL(f));
  return rc;
}
static int x_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at) {
  pthread_mutex_lock(&lock);
  int rc = failing(f, 'r');
  pthread_mutex_unlock(&lock);
  return rc ? rc : REAL(f)->pMethods->xRead(REAL(f), to, n, at);
}
static int x_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at) {
  enter();
  int rc = failing(f, 'w');
  note(f, at, at + n);
  if (!rc) rc = REAL(f)->pMethods->xWrite(REAL(f), from, n, at);
  else if (n > 512) REAL(f)->pMethods->xWrite(REAL(f), from, 512, at); /* one sector came there */
  pthread_mutex_unlock(&lock);
  return rc;
}
static int x_truncate(sqlite3_file *f, sqlite3_int64 size) {
  enter();
  int rc = failing(f, 't');
  if (!rc) rc = REAL(f)->pMethods->xTruncate(REAL(f), size);
  pthread_mutex_unlock(&lock);
  return rc;
}
static int x_sync(sqlite3_file *f, int flags) {
  enter();
  int rc = failing(f, 's');
  if (!rc) rc = REAL(f)->pMethods->xSync(REAL(f), flags);
  if (!rc && is_watched(f)) rc = keep(f);
  pthread_mutex_unlock(&lock);
  return rc;
}
static int x_size(sqlite3_file *f, sqlite3_int64 *n) { return REAL(f)->pMethods->xFileSize(REAL(f), n); }
static int x_lock(sqlite3_file *f, int how) { return REAL(f)->pMethods->xLock(REAL(f), how); }
static int x_unlock(sqlite3_file *f, int how) { return REAL(f)->pMethods->xUnlock(REAL(f), how); }
static int x_reserved(sqlite3_file *f, int *is) { return REAL(f)->pMethods->xCheckReservedLock(REAL(f), is); }
static int x_control(sqlite3_file *f, int what, void *arg) { return REAL(f)->pMethods->xFileControl(REAL(f), what, arg); }
static int x_sector(sqlite3_file *f) { return REAL(f)->pMethods->xSectorSize(REAL(f)); }
static int x_device(sqlite3_file *f) { return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f)); }
static int x_map(sqlite3_file *f, int page, int n, int grow, void volatile **at) { return REAL(f)->pMethods->xShmMap(REAL(f), page, n, grow, at); }
static int x_shmlock(sqlite3_file *f, int at, int n, int how) { return REAL(f)->pMethods->xShmLock(REAL(f), at, n, how); }
static void x_barrier(sqlite3_file *f) { REAL(f)->pMethods->xShmBarrier(REAL(f)); }
static int x_unmap(sqlite3_file *f, int drop) { return REAL(f)->pMethods->xShmUnmap(REAL(f), drop); }

static const sqlite3_io_methods methods = {
  2, x_close, x_read, x_write, x_truncate, x_sync, x_size, x_lock, x_unlock, x_reserved,
  x_control, x_sector, x_device, x_map, x_shmlock, x_barrier, x_unmap, 0, 0,
};

static int x_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags, int *out) {
  File *file = (File *)f;
  file->base.pMethods = 0;
  file->path = name;
  file->real = sqlite3_malloc(under->szOsFile);
  if (!file->real) return SQLITE_NOMEM;
  memset(file->real, 0, under->szOsFile);
  int rc = under->xOpen(under, name, file->real, flags, out);
  if (file->real->pMethods) file->base.pMethods = &methods;
  else sqlite3_free(file->real);
  return rc;
}

/* bad_fail(OPERATION, SUFFIX, CODE) makes operations fail; an empty OPERATION: none. */
static void bad_fail(sqlite3_context *c, int n, sqlite3_value **v) {
  pthread_mutex_lock(&lock);
  op = sqlite3_value_text(v[0])[0];
  snprintf(suffix, sizeof suffix, "%s", (const char *)sqlite3_value_text(v[1]));
  code = sqlite3_value_int(v[2]);
  hits = 0;
  pthread_mutex_unlock(&lock);
}

/* bad_hits() is how many operations have failed since then. */
static void bad_hits(sqlite3_context *c, int n, sqlite3_value **v) {
  pthread_mutex_lock(&lock);
  sqlite3_result_int(c, hits);
  pthread_mutex_unlock(&lock);
}

/* bad_watch(PATH) keeps from now on what the files of a database are when they are synced. */
static void bad_watch(sqlite3_context *c, int n, sqlite3_value **v) {
  pthread_mutex_lock(&lock);
  snprintf(watched, sizeof watched, "%s", (const char *)sqlite3_value_text(v[0]));
  memset(unsynced, 0, sizeof unsynced);
  pthread_mutex_unlock(&lock);
}

/* bad_hold(ON) keeps all files as they are until it is called with 0. */
static void bad_hold(sqlite3_context *c, int n, sqlite3_value **v) {
  pthread_mutex_lock(&lock);
  held = sqlite3_value_int(v[0]);
  pthread_cond_broadcast(&released);
  pthread_mutex_unlock(&lock);
}

int sqlite3_extension_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  SQLITE_EXTENSION_INIT2(api);
  if (!under) {
    under = sqlite3_vfs_find(0);
    disk = *under;
    disk.zName = "baddisk";
    disk.szOsFile = sizeof(File);
    disk.xOpen = x_open;
    disk.pNext = 0;
    int rc = sqlite3_vfs_register(&disk, 1);
    if (rc) return rc;
  }
  sqlite3_create_function(db, "bad_fail", 3, SQLITE_UTF8, 0, bad_fail, 0, 0);
  sqlite3_create_function(db, "bad_hits", 0, SQLITE_UTF8, 0, bad_hits, 0, 0);
  sqlite3_create_function(db, "bad_watch", 1, SQLITE_UTF8, 0, bad_watch, 0, 0);
  sqlite3_create_function(db, "bad_hold", 1, SQLITE_UTF8, 0, bad_hold, 0, 0);
  return SQLITE_OK_LOAD_PERMANENTLY;
}
