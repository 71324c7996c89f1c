/*
 * A JVMTI agent that is attached to a running JVM, writes a map of its compiled code (PERFMAP.md), and is
 * done when Agent_OnAttach returns. If anything fails, it returns a number and the JVM goes on.
 */
#include "map.h"
#include "sys.h"

enum { PATH_BYTES = 4096, RECORD_ROOM = 64 << 10, PATIENCE_MILLISECONDS = 10000 };
enum { MILLISECOND = 1000000 }; /* in nanoseconds */

/*
 * Events come from several threads, and one may still arrive after they were disabled. These variables are never
 * freed (the JVM keeps the library), so a late event can check whether there is a map.
 */
static _Atomic(struct map *) current;
static atomic_int inside;
static atomic_flag taken = ATOMIC_FLAG_INIT;

/* Every call of enter_callback() is followed by one of leave_callback(). */
static struct map *enter_callback(jvmtiEnv *jvmti)
{
    atomic_fetch_add(&inside, 1);
    struct map *map = atomic_load(&current);
    return map != NULL && map->jvmti == jvmti ? map : NULL;
}

static void leave_callback(void)
{
    atomic_fetch_sub(&inside, 1);
}

/*
 * Locks the map for one event; false if the event is not to be written. A thread may enter the monitor twice: an
 * event that the JVM sends while one is being written is about new code, which no sample has seen.
 */
static bool begin_event(struct map *map)
{
    if (map == NULL)
        return false;
    if ((*map->jvmti)->RawMonitorEnter(map->jvmti, map->monitor) != JVMTI_ERROR_NONE) {
        map_fail(map, NOT_ALL_EVENTS);
        return false;
    }
    if (!map->entered && map->failure == DONE) {
        map->entered = true;
        return true;
    }
    (*map->jvmti)->RawMonitorExit(map->jvmti, map->monitor);
    return false;
}

static void end_event(struct map *map)
{
    map->entered = false;
    (*map->jvmti)->RawMonitorExit(map->jvmti, map->monitor);
}

static void JNICALL on_code(jvmtiEnv *jvmti, jmethodID method, jint size, const void *start, jint places_count,
                            const jvmtiAddrLocationMap *places, const void *compile_info)
{
    (void)places_count;
    (void)places;
    struct map *map = enter_callback(jvmti);
    if (size > 0 && begin_event(map)) {
        code_loaded(map, method, (uint64_t)(uintptr_t)start, (uint32_t)size, compile_info);
        end_event(map);
    }
    leave_callback();
}

static void JNICALL on_stub(jvmtiEnv *jvmti, const char *name, const void *start, jint size)
{
    struct __attribute__((packed)) {
        uint64_t start;
        uint32_t length, name;
    } stub = {(uint64_t)(uintptr_t)start, (uint32_t)size, 0};
    struct map *map = enter_callback(jvmti);
    if (size > 0 && begin_event(map)) {
        stub.name = name_of_text(map, name);
        out_record(map, STUB, &stub, sizeof stub, NULL, 0);
        end_event(map);
    }
    leave_callback();
}

static void JNICALL on_unload(jvmtiEnv *jvmti, jmethodID method, const void *start)
{
    (void)method;
    const uint64_t address = (uint64_t)(uintptr_t)start;
    struct map *map = enter_callback(jvmti);
    if (begin_event(map)) {
        out_record(map, UNLOAD, &address, sizeof address, NULL, 0);
        end_event(map);
    }
    leave_callback();
}

static const jvmtiEvent EVENTS[] = {JVMTI_EVENT_COMPILED_METHOD_UNLOAD, JVMTI_EVENT_COMPILED_METHOD_LOAD,
                                    JVMTI_EVENT_DYNAMIC_CODE_GENERATED};
enum { EVENT_COUNT = sizeof EVENTS / sizeof EVENTS[0] };

static enum failure prepare(jvmtiEnv *jvmti)
{
    const jvmtiCapabilities wanted = {.can_generate_compiled_method_load_events = 1};
    const jvmtiEventCallbacks callbacks = {
        .CompiledMethodLoad = on_code, .CompiledMethodUnload = on_unload, .DynamicCodeGenerated = on_stub};
    if ((*jvmti)->AddCapabilities(jvmti, &wanted) != JVMTI_ERROR_NONE)
        return NO_CAPABILITY;
    if ((*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks) != JVMTI_ERROR_NONE)
        return NO_EVENTS;
    return DONE;
}

static enum failure switch_events(jvmtiEnv *jvmti, jvmtiEventMode mode)
{
    enum failure failure = DONE;
    for (int i = 0; i < EVENT_COUNT; i++)
        if ((*jvmti)->SetEventNotificationMode(jvmti, mode, EVENTS[i], NULL) != JVMTI_ERROR_NONE)
            failure = NO_EVENTS;
    return failure;
}

static enum failure replay_existing_code(jvmtiEnv *jvmti)
{
    if ((*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED) != JVMTI_ERROR_NONE)
        return NOT_ALL_EVENTS;
    if ((*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD) != JVMTI_ERROR_NONE)
        return NOT_ALL_EVENTS;
    return DONE;
}

/* Waits until no callback can use the map any more; false if one does not end. */
static bool callbacks_have_ended(void)
{
    for (int waited = 0; atomic_load(&inside) != 0; waited++) {
        if (waited == PATIENCE_MILLISECONDS)
            return false;
        sys_sleep_until(sys_clock(MONOTONIC) + MILLISECOND);
    }
    return true;
}

/* Has the JVM report all its code. Afterwards nobody else writes to the map, unless the failure is CALLBACK_STAYS. */
static enum failure collect(struct map *map)
{
    atomic_store(&current, map);
    enum failure failure = switch_events(map->jvmti, JVMTI_ENABLE);
    if (failure == DONE)
        failure = replay_existing_code(map->jvmti);
    switch_events(map->jvmti, JVMTI_DISABLE);
    atomic_store(&current, NULL);
    if (!callbacks_have_ended())
        return CALLBACK_STAYS;
    if (failure != DONE)
        map_fail(map, failure);
    out_end(map);
    return (enum failure)atomic_load(&map->failure);
}

/* Needs a map in memory and a JVMTI environment of its own. */
static enum failure write_with(struct map *map)
{
    enum failure failure = prepare(map->jvmti);
    if (failure != DONE)
        return failure;
    if ((*map->jvmti)->CreateRawMonitor(map->jvmti, "hprofiler map", &map->monitor) != JVMTI_ERROR_NONE)
        return NO_EVENTS;
    failure = collect(map);
    if (failure != CALLBACK_STAYS)
        (*map->jvmti)->DestroyRawMonitor(map->jvmti, map->monitor);
    return failure;
}

static enum failure write_in_environment(struct map *map)
{
    void *jvmti = NULL;
    if ((*map->vm)->GetEnv(map->vm, &jvmti, JVMTI_VERSION_1_2) != JNI_OK)
        return NO_JVMTI;
    map->jvmti = jvmti;
    enum failure failure = write_with(map);
    if (failure != CALLBACK_STAYS)
        (*map->jvmti)->DisposeEnvironment(map->jvmti);
    return failure;
}

/* Memory that a callback may still use is not freed: a leak is better than a crashed JVM. */
static enum failure write_map(JavaVM *vm, int fd)
{
    struct map *map = sys_map(sizeof *map);
    if (map == NULL)
        return NO_MEMORY;
    map->vm = vm;
    map->fd = fd;
    enum failure failure = NO_MEMORY;
    if (names_make(&map->names) && bytes_make(&map->record, RECORD_ROOM) && out_begin(map))
        failure = write_in_environment(map);
    if (failure == CALLBACK_STAYS)
        return failure;
    names_free(&map->names);
    bytes_free(&map->record);
    bytes_free(&map->out);
    sys_unmap(map, sizeof *map);
    return failure;
}

static const char *text_of(enum failure failure)
{
    switch (failure) {
    case NO_JVMTI:
        return "error: the JVM has no JVMTI 1.2\n";
    case NO_CAPABILITY:
        return "error: the JVM cannot tell about compiled methods\n";
    case NO_EVENTS:
        return "error: the JVM does not let events be set up\n";
    case NO_MEMORY:
        return "error: no memory\n";
    case CANNOT_WRITE:
        return "error: the file cannot be written, perhaps its file system is full\n";
    case TOO_LARGE:
        return "error: the map would be larger than 256 MiB\n";
    default:
        return "error: the JVM did not tell about all of its code\n";
    }
}

static void write_failure(int fd, enum failure failure)
{
    const char *text = text_of(failure);
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    sys_empty(fd);
    sys_write(fd, text, size);
}

static bool is_path(const char *options)
{
    if (options == NULL || options[0] != '/')
        return false;
    size_t size = 0;
    while (size < PATH_BYTES && options[size] != '\0')
        size++;
    return size < PATH_BYTES;
}

static enum failure write_to(JavaVM *vm, const char *path)
{
    if (!is_path(path))
        return BAD_OPTIONS;
    int fd = sys_open(path);
    if (fd < 0)
        return CANNOT_OPEN;
    enum failure failure = sys_is_new_file(fd) ? write_map(vm, fd) : NO_NEW_FILE;
    if (failure == CALLBACK_STAYS)
        return failure;
    if (failure != DONE && failure != NO_NEW_FILE)
        write_failure(fd, failure);
    sys_close(fd);
    return failure;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    if (atomic_flag_test_and_set(&taken))
        return ANOTHER_MAP;
    enum failure failure = write_to(vm, options);
    if (failure != CALLBACK_STAYS)
        atomic_flag_clear(&taken);
    return (jint)failure;
}
