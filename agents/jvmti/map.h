/*
 * One map that is being written (PERFMAP.md), and the functions of each file.
 * The first failure is kept in `failure`; nothing is written after it.
 */
#ifndef PERFMAP_MAP_H
#define PERFMAP_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jvmti.h>
#include <jvmticmlr.h>

/* What Agent_OnAttach returns. */
enum failure {
    DONE = 0,
    BAD_OPTIONS = 101,
    CANNOT_OPEN,
    NO_NEW_FILE,
    ANOTHER_MAP,
    NO_JVMTI,
    NO_CAPABILITY,
    NO_EVENTS,
    NO_MEMORY,
    NOT_ALL_EVENTS,
    CANNOT_WRITE,
    TOO_LARGE,
    CALLBACK_STAYS
};

enum record { NAME = 1, CODE, STUB, UNLOAD, END };

enum { NAME_BYTES = 4096, FRAMES = 1024, OUTPUT_BYTES = 256 << 20, RECORD_BYTES = 16 << 20 };

/* Bytes that are being collected, in memory of whole pages. */
struct bytes {
    uint8_t *at;
    size_t size, room;
};

bool bytes_make(struct bytes *bytes, size_t room);
void bytes_free(struct bytes *bytes);

/* Room for `more` bytes behind the last, which the caller counts as used; NULL without memory. */
uint8_t *bytes_add(struct bytes *bytes, size_t more);

/* Methods whose names are in the file already: a hash table from jmethodID to the name's number. */
struct known {
    jmethodID method; /* NULL in an empty slot */
    uint32_t name;
};

struct names {
    struct known *slots;
    size_t count, room; /* room is a power of two, at least twice the count */
};

struct map {
    JavaVM *vm;
    jvmtiEnv *jvmti;
    jrawMonitorID monitor; /* held while an event is written: events come from several threads */
    int fd;
    bool entered;       /* an event is being written: by this very thread, when it holds the monitor */
    atomic_int failure; /* the first of enum failure, or DONE */
    uint64_t written;
    uint64_t records[END]; /* how many, by kind */
    uint64_t without_inlining;
    struct bytes out;    /* on its way to the file */
    struct bytes record; /* a code record that is being made */
    struct names names;
    char name[NAME_BYTES];
};

/* Keeps the first failure. Needs no monitor. */
void map_fail(struct map *map, enum failure failure);

/* out.c: the file. */
bool out_begin(struct map *map);
void out_record(struct map *map, enum record kind, const void *head, size_t head_size, const void *body, size_t size);
void out_end(struct map *map);

/* names.c: the number of a method's name, or of a text; writes its record when it is new. */
bool names_make(struct names *names);
void names_free(struct names *names);
uint32_t name_of_method(struct map *map, JNIEnv *jni, jmethodID method);
uint32_t name_of_text(struct map *map, const char *text);

/* code.c: one compiled method with what was inlined into it. */
void code_loaded(struct map *map, jmethodID method, uint64_t start, uint32_t length, const void *compile_info);

#endif
