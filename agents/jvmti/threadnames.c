/*
 * A JVMTI agent that is attached to a running JVM and, on a thread of its own, writes down the names of the JVM's
 * threads whenever they change (THREADNAMES.md), until its time is over or its file has been deleted. It stops no
 * thread and calls no Java code but the constructor of its own thread. If anything fails, it ends and the JVM goes on.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jvmti.h>

#include "sys.h"

/* What Agent_OnAttach returns. */
enum failure {
    DONE = 0,
    BAD_OPTIONS = 101,
    CANNOT_OPEN,
    NO_NEW_FILE,
    TOO_MANY,
    NO_JVMTI,
    NO_THREAD,
    NO_MEMORY,
    CANNOT_WRITE
};

enum record { NAME = 1, POLL, FORGET, END, CROWD };

enum {
    PREFIXES_BYTES = 512,
    NAME_BYTES = 246,
    SLOTS = 8192, /* a power of two */
    THREADS = SLOTS - SLOTS / 4, /* in slots at a time */
    BUFFER_BYTES = 64 << 10,
    OUTPUT_BYTES = 64 << 20,
    FOLLOWERS = 4,
    SHORTEST_MILLISECONDS = 5,
    LONGEST_MILLISECONDS = 10000,
    LONGEST_SECONDS = 7 * 24 * 3600,
    /* A poll is followed by a pause of at least this many times the processor time that it took. */
    PAUSE_FACTOR = 200
};

static const int64_t SECOND = 1000000000;

/* The last name of a thread; thread 0 in an empty slot, since ids begin with 1. */
struct slot {
    int64_t thread;
    uint16_t size;
    char name[NAME_BYTES];
};

struct follower {
    jvmtiEnv *jvmti;
    jfieldID thread_id;
    int fd;
    bool failed; /* nothing more is written */
    int64_t interval, end; /* in nanoseconds, by the monotonic clock */
    uint32_t written;
    uint32_t buffered;
    uint32_t used; /* slots */
    uint32_t seen; /* threads with names of interest in this poll */
    bool crowded; /* there was no slot for one of them */
    bool crowd_written;
    bool quiet; /* the last poll saw no new name */
    struct slot *slots;
    char prefixes[PREFIXES_BYTES]; /* separated by | */
    uint8_t buffer[BUFFER_BYTES];
};

static atomic_int followers;

static void flush(struct follower *follower)
{
    const uint8_t *from = follower->buffer;
    while (follower->buffered > 0 && !follower->failed) {
        long done = sys_write(follower->fd, from, follower->buffered);
        if (done == SYS_INTERRUPTED)
            continue;
        follower->failed = done <= 0;
        if (done > 0) {
            from += done;
            follower->buffered -= (uint32_t)done;
        }
    }
    follower->buffered = 0;
}

static void put(struct follower *follower, const void *head, size_t head_size, const void *body, size_t size)
{
    if (follower->buffered + head_size + size > BUFFER_BYTES)
        flush(follower);
    __builtin_memcpy(follower->buffer + follower->buffered, head, head_size);
    __builtin_memcpy(follower->buffer + follower->buffered + head_size, body, size);
    follower->buffered += (uint32_t)(head_size + size);
    follower->written += (uint32_t)(head_size + size);
}

static void put_name(struct follower *follower, int64_t thread, const char *name, uint16_t size)
{
    const struct __attribute__((packed)) {
        uint8_t kind;
        int64_t thread;
        uint16_t size;
    } head = {NAME, thread, size};
    put(follower, &head, sizeof head, name, size);
}

/* The slot of a thread, or the empty one where it belongs. */
static struct slot *slot_of(struct follower *follower, int64_t thread)
{
    size_t at = (size_t)(((uint64_t)thread * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % SLOTS;
    while (follower->slots[at].thread != 0 && follower->slots[at].thread != thread)
        at = (at + 1) % SLOTS;
    return &follower->slots[at];
}

/* Threads that ended keep their slots until all are emptied, between two polls: names of one poll belong together. */
static bool forget(struct follower *follower)
{
    const uint8_t kind = FORGET;
    put(follower, &kind, sizeof kind, NULL, 0);
    sys_unmap(follower->slots, SLOTS * sizeof *follower->slots);
    follower->slots = sys_map(SLOTS * sizeof *follower->slots);
    follower->used = 0;
    return follower->slots != NULL;
}

/* Whether most of the threads that have slots have ended. */
static bool is_full_of_ended_threads(const struct follower *follower)
{
    return follower->crowded && follower->seen <= THREADS / 2;
}

static uint16_t size_of(const char *name)
{
    uint16_t size = 0;
    while (size < NAME_BYTES && name[size] != '\0')
        size++;
    return size;
}

/* A prefix of a lone * stands for every name. */
static bool is_of_interest(const struct follower *follower, const char *name)
{
    const char *prefix = follower->prefixes;
    for (;;) {
        if (prefix[0] == '*' && (prefix[1] == '\0' || prefix[1] == '|'))
            return true;
        size_t i = 0;
        while (prefix[i] != '\0' && prefix[i] != '|' && prefix[i] == name[i])
            i++;
        if (prefix[i] == '\0' || prefix[i] == '|')
            return true;
        while (prefix[i] != '\0' && prefix[i] != '|')
            i++;
        if (prefix[i] == '\0')
            return false;
        prefix += i + 1;
    }
}

/* Writes the name if it is new. One that is of no interest any more is written as empty. */
static void note(struct follower *follower, int64_t thread, const char *name)
{
    bool wanted = is_of_interest(follower, name);
    struct slot *slot = slot_of(follower, thread);
    follower->seen += wanted;
    if (slot->thread == 0) {
        if (!wanted)
            return;
        if (follower->used == THREADS) {
            follower->crowded = true;
            return;
        }
        slot->thread = thread;
        slot->size = 0;
        follower->used++;
    }
    uint16_t size = wanted ? size_of(name) : 0;
    if (size == slot->size && __builtin_memcmp(slot->name, name, size) == 0)
        return;
    slot->size = size;
    __builtin_memcpy(slot->name, name, size);
    put_name(follower, thread, name, size);
}

static void look_at(struct follower *follower, JNIEnv *jni, jthread thread)
{
    jvmtiThreadInfo info = {0};
    jvmtiEnv *jvmti = follower->jvmti;
    if ((*jvmti)->GetThreadInfo(jvmti, thread, &info) != JVMTI_ERROR_NONE || info.name == NULL)
        return; /* it has ended */
    note(follower, (*jni)->GetLongField(jni, thread, follower->thread_id), info.name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
}

/* Looks at all threads; false if that is not possible any more. */
static bool look_at_all(struct follower *follower, JNIEnv *jni)
{
    jvmtiEnv *jvmti = follower->jvmti;
    jthread *threads = NULL;
    jint count = 0;
    if ((*jni)->PushLocalFrame(jni, 64) != 0) {
        (*jni)->ExceptionClear(jni);
        return false;
    }
    bool done = (*jvmti)->GetAllThreads(jvmti, &count, &threads) == JVMTI_ERROR_NONE;
    follower->seen = 0;
    follower->crowded = false;
    for (jint i = 0; done && i < count; i++)
        look_at(follower, jni, threads[i]);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)threads);
    (*jni)->PopLocalFrame(jni, NULL);
    return done;
}

/* Notes the names of all threads; false if that is not possible any more. */
static bool poll(struct follower *follower, JNIEnv *jni)
{
    struct __attribute__((packed)) {
        uint8_t kind;
        int64_t wall, begin, end;
    } times = {POLL, sys_clock(WALL), sys_clock(MONOTONIC), 0};
    uint32_t before = follower->written;
    if (is_full_of_ended_threads(follower) && !forget(follower))
        return false;
    if (!look_at_all(follower, jni))
        return false;
    times.end = sys_clock(MONOTONIC);
    if (follower->crowded && !is_full_of_ended_threads(follower) && !follower->crowd_written) {
        const uint8_t kind = CROWD;
        put(follower, &kind, sizeof kind, NULL, 0);
        follower->crowd_written = true;
    }
    bool quiet = follower->written == before;
    if (quiet && follower->quiet) {
        /* Of polls in a row that saw no new name only the last is of use. */
        long done = sys_write_at(follower->fd, &times, sizeof times, before - sizeof times);
        follower->failed = done != (long)sizeof times && done != SYS_INTERRUPTED;
    } else {
        put(follower, &times, sizeof times, NULL, 0);
    }
    follower->quiet = quiet;
    flush(follower);
    return !follower->failed && follower->written < OUTPUT_BYTES;
}

static void release(struct follower *follower)
{
    if (follower->jvmti != NULL)
        (*follower->jvmti)->DisposeEnvironment(follower->jvmti);
    sys_close(follower->fd);
    if (follower->slots != NULL)
        sys_unmap(follower->slots, SLOTS * sizeof *follower->slots);
    sys_unmap(follower, sizeof *follower);
}

static void JNICALL follow(jvmtiEnv *jvmti, JNIEnv *jni, void *argument)
{
    (void)jvmti;
    struct follower *follower = argument;
    int64_t now = sys_clock(MONOTONIC);
    while (now < follower->end && sys_has_name(follower->fd)) {
        int64_t worked = sys_clock(THREAD);
        if (!poll(follower, jni))
            break;
        worked = sys_clock(THREAD) - worked;
        int64_t next = now + follower->interval, earliest = sys_clock(MONOTONIC) + worked * PAUSE_FACTOR;
        sys_sleep_until(next > earliest ? next : earliest);
        now = sys_clock(MONOTONIC);
    }
    const uint8_t kind = END;
    put(follower, &kind, sizeof kind, NULL, 0);
    flush(follower);
    release(follower);
    atomic_fetch_sub(&followers, 1);
}

/* The number at `text`, which a comma must follow; 0 if there is none. Returns what comes after the comma. */
static const char *read_number(const char *text, uint32_t *number)
{
    uint32_t value = 0;
    size_t digits = 0;
    for (; digits < 9 && text[digits] >= '0' && text[digits] <= '9'; digits++)
        value = value * 10 + (uint32_t)(text[digits] - '0');
    *number = text[digits] == ',' ? value : 0;
    return text[digits] == ',' ? text + digits + 1 : text;
}

/* Reads MILLISECONDS,SECONDS,PREFIX|PREFIX…,PATH. Returns the path; NULL: they are wrong. */
static const char *read_options(struct follower *follower, const char *options)
{
    uint32_t milliseconds, seconds;
    size_t size = 0;
    options = read_number(read_number(options, &milliseconds), &seconds);
    while (size < PREFIXES_BYTES && options[size] != ',' && options[size] != '\0')
        size++;
    if (milliseconds < SHORTEST_MILLISECONDS || milliseconds > LONGEST_MILLISECONDS || seconds == 0 ||
        seconds > LONGEST_SECONDS || size == 0 || size == PREFIXES_BYTES || options[size] != ',' ||
        options[size + 1] != '/')
        return NULL;
    __builtin_memcpy(follower->prefixes, options, size);
    follower->interval = (int64_t)milliseconds * (SECOND / 1000);
    follower->end = sys_clock(MONOTONIC) + seconds * SECOND;
    return options + size + 1;
}

/* A java.lang.Thread that has not been started. NULL if there is none. */
static jthread make_thread(struct follower *follower, JNIEnv *jni)
{
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    if (class == NULL)
        return NULL;
    follower->thread_id = (*jni)->GetFieldID(jni, class, "tid", "J");
    if (follower->thread_id == NULL)
        return NULL;
    jmethodID constructor = (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V");
    jstring name = constructor == NULL ? NULL : (*jni)->NewStringUTF(jni, "hprofiler thread names");
    return name == NULL ? NULL : (*jni)->NewObject(jni, class, constructor, name);
}

/* Starts to follow. The thread has the follower from then on. */
static enum failure start(struct follower *follower, JNIEnv *jni)
{
    enum failure failure = NO_THREAD;
    if ((*jni)->PushLocalFrame(jni, 16) != 0) {
        (*jni)->ExceptionClear(jni);
        return failure;
    }
    jthread thread = make_thread(follower, jni);
    if ((*jni)->ExceptionCheck(jni))
        (*jni)->ExceptionClear(jni);
    else if (thread != NULL && (*follower->jvmti)->RunAgentThread(follower->jvmti, thread, follow, follower,
                                                                 JVMTI_THREAD_NORM_PRIORITY) == JVMTI_ERROR_NONE)
        failure = DONE;
    (*jni)->PopLocalFrame(jni, NULL);
    return failure;
}

static enum failure begin(JavaVM *vm, struct follower *follower, const char *options)
{
    struct __attribute__((packed)) {
        char magic[8];
        uint32_t version, milliseconds;
    } head = {{'H', 'P', 'R', 'O', 'F', 'T', 'H', 'R'}, 1, 0};
    void *jvmti = NULL, *jni = NULL;
    const char *path = read_options(follower, options);
    if (path == NULL)
        return BAD_OPTIONS;
    follower->fd = sys_open(path);
    if (follower->fd < 0)
        return CANNOT_OPEN;
    if (!sys_is_new_file(follower->fd))
        return NO_NEW_FILE;
    follower->slots = sys_map(SLOTS * sizeof *follower->slots);
    if (follower->slots == NULL)
        return NO_MEMORY;
    if ((*vm)->GetEnv(vm, &jni, JNI_VERSION_1_2) != JNI_OK || (*vm)->GetEnv(vm, &jvmti, JVMTI_VERSION_1_2) != JNI_OK)
        return NO_JVMTI;
    follower->jvmti = jvmti;
    head.milliseconds = (uint32_t)(follower->interval / (SECOND / 1000));
    put(follower, &head, sizeof head, NULL, 0);
    flush(follower);
    return follower->failed ? CANNOT_WRITE : start(follower, jni);
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    enum failure failure = TOO_MANY;
    if (atomic_fetch_add(&followers, 1) < FOLLOWERS) {
        struct follower *follower = sys_map(sizeof *follower);
        if (follower == NULL) {
            failure = NO_MEMORY;
        } else {
            follower->fd = -1;
            failure = begin(vm, follower, options == NULL ? "" : options);
            if (failure == DONE)
                return DONE;
            release(follower);
        }
    }
    atomic_fetch_sub(&followers, 1);
    return (jint)failure;
}
