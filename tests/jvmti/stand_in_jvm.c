/*
 * Stands in for a JVM where a real one cannot run or fail: under musl, for arm64, and for very rare answers of JVMTI.
 */
#define _GNU_SOURCE
#include "stand_in.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include <jvmticmlr.h>

enum { STORM_THREADS = 4, STORM_EVENTS = 20000, STUCK_SECONDS = 600 };
enum { MOST_FRAMES = 1024, PLACES_OF_A_FULL_RECORD = 400000 };

static jvmtiEventCallbacks callbacks;
static pthread_mutex_t monitor;
static pthread_t late;
static sem_t late_is_in, off;
static __thread bool is_late;
static atomic_bool is_off;

/* Methods are numbers; odd ones above 1000 have been unloaded. */
static bool is_stale(jmethodID method)
{
    uintptr_t number = (uintptr_t)method;
    return number > 1000 && number < 2000 && number % 2 == 1;
}

static jmethodID method(uintptr_t number)
{
    return (jmethodID)number;
}

static char *text(const char *format, uintptr_t number)
{
    char *made;
    if (asprintf(&made, format, (unsigned long)number) < 0)
        abort();
    count_allocated(1);
    return made;
}

static jvmtiError JNICALL method_name(jvmtiEnv *env, jmethodID of, char **name, char **signature, char **generic)
{
    (void)env, (void)signature, (void)generic;
    if (is("no memory for names"))
        return JVMTI_ERROR_OUT_OF_MEMORY;
    if (is_stale(of))
        return JVMTI_ERROR_INVALID_METHODID;
    *name = text("m%lu", (uintptr_t)of);
    if (is("long names")) {
        *name = realloc(*name, 9000);
        memset(*name, 'n', 8999);
        (*name)[8999] = '\0';
    }
    if (is("nested event"))
        callbacks.DynamicCodeGenerated(&environment, "nested", (void *)0x77000, 16);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL declaring_class(jvmtiEnv *env, jmethodID of, jclass *class)
{
    (void)env;
    if (is("dying") && (uintptr_t)of == 2)
        return JVMTI_ERROR_WRONG_PHASE;
    count_allocated(1);
    *class = (jclass)of;
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL class_signature(jvmtiEnv *env, jclass class, char **signature, char **generic)
{
    (void)env, (void)generic;
    *signature = text("Lroom/C%lu;", (uintptr_t)class);
    return JVMTI_ERROR_NONE;
}

static void JNICALL delete_local_ref(JNIEnv *env, jobject reference)
{
    (void)env, (void)reference;
    count_allocated(-1);
}

static jvmtiError JNICALL add_capabilities(jvmtiEnv *env, const jvmtiCapabilities *wanted)
{
    (void)env;
    bool able = wanted->can_generate_compiled_method_load_events && !is("no capability");
    return able ? JVMTI_ERROR_NONE : JVMTI_ERROR_NOT_AVAILABLE;
}

static jvmtiError JNICALL set_callbacks(jvmtiEnv *env, const jvmtiEventCallbacks *wanted, jint size)
{
    (void)env;
    memcpy(&callbacks, wanted, (size_t)size);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL create_monitor(jvmtiEnv *env, const char *name, jrawMonitorID *made)
{
    (void)env, (void)name;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&monitor, &kind);
    *made = (jrawMonitorID)&monitor;
    count_allocated(1);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL destroy_monitor(jvmtiEnv *env, jrawMonitorID made)
{
    (void)env, (void)made;
    count_allocated(-1);
    return pthread_mutex_destroy(&monitor) == 0 ? JVMTI_ERROR_NONE : JVMTI_ERROR_NOT_MONITOR_OWNER;
}

static jvmtiError JNICALL enter_monitor(jvmtiEnv *env, jrawMonitorID made)
{
    (void)env, (void)made;
    if (is("no monitor"))
        return JVMTI_ERROR_INVALID_MONITOR;
    if (is_late && !is_off) {
        sem_post(&late_is_in);
        sem_wait(&off);
        sleep(is("stuck event") ? STUCK_SECONDS : 0);
    }
    pthread_mutex_lock(&monitor);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL exit_monitor(jvmtiEnv *env, jrawMonitorID made)
{
    (void)env, (void)made;
    pthread_mutex_unlock(&monitor);
    return JVMTI_ERROR_NONE;
}

/* One compiled method with one place for each stack; a stack is methods from the inside, ended by 0. */
static void load(uintptr_t start, int size, int places, const int *offsets, const uintptr_t stacks[][4])
{
    PCStackInfo infos[9];
    jmethodID methods[9][4];
    for (int i = 0; i < places; i++) {
        int depth = 0;
        for (; depth < 4 && stacks[i][depth] != 0; depth++)
            methods[i][depth] = method(stacks[i][depth]);
        infos[i] = (PCStackInfo){(void *)(start + (uintptr_t)(intptr_t)offsets[i]), depth, methods[i], NULL};
    }
    jvmtiCompiledMethodLoadInlineRecord record = {
        {JVMTI_CMLR_INLINE_INFO, JVMTI_CMLR_MAJOR_VERSION_1, JVMTI_CMLR_MINOR_VERSION_0, NULL}, places, infos};
    jvmtiCompiledMethodLoadDummyRecord other = {
        {JVMTI_CMLR_DUMMY, JVMTI_CMLR_MAJOR_VERSION_1, JVMTI_CMLR_MINOR_VERSION_0, &record.header}, ""};
    callbacks.CompiledMethodLoad(&environment, method(1), size, (void *)start, 0, NULL, &other);
}

static void tell_a_little(void)
{
    const int offsets[] = {-5, 10, 10, 20, 30, 40, 35, 99, 100};
    const uintptr_t stacks[][4] = {{9}, {3, 2, 1}, {9}, {3, 2, 1}, {2, 1}, {1001, 2, 1}, {9}, {5}, {9}};
    load(0x10000, 100, 9, offsets, stacks);
    callbacks.CompiledMethodUnload(&environment, method(1), (void *)0x10000);
    callbacks.CompiledMethodLoad(&environment, method(1001), 50, (void *)0x20000, 0, NULL, NULL);
}

/* Code with one place in the innermost of `depth` nested inlined methods. */
static void load_deep(int depth)
{
    jmethodID *methods = calloc((size_t)depth, sizeof *methods);
    for (int i = 0; i < depth; i++)
        methods[i] = method(i < depth - 1 ? 10000 : 1);
    PCStackInfo info = {(void *)0x10000, depth, methods, NULL};
    jvmtiCompiledMethodLoadInlineRecord record = {
        {JVMTI_CMLR_INLINE_INFO, JVMTI_CMLR_MAJOR_VERSION_1, JVMTI_CMLR_MINOR_VERSION_0, NULL}, 1, &info};
    callbacks.CompiledMethodLoad(&environment, method(1), 100, (void *)0x10000, 0, NULL, &record);
    free(methods);
}

/* Code with `places` stacks of eight methods, all different. */
static void load_much(int places)
{
    PCStackInfo *infos = calloc((size_t)places, sizeof *infos);
    jmethodID *methods = calloc((size_t)places * 8, sizeof *methods);
    jvmtiCompiledMethodLoadInlineRecord record = {
        {JVMTI_CMLR_INLINE_INFO, JVMTI_CMLR_MAJOR_VERSION_1, JVMTI_CMLR_MINOR_VERSION_0, NULL}, places, infos};
    for (int i = 0; i < places; i++) {
        for (int j = 0; j < 8; j++)
            methods[i * 8 + j] = method((uintptr_t)(10000 + (i * 8 + j) % 60000));
        infos[i] = (PCStackInfo){(void *)(uintptr_t)(0x10000 + i), 8, methods + i * 8, NULL};
    }
    callbacks.CompiledMethodLoad(&environment, method(1), places, (void *)0x10000, 0, NULL, &record);
    free(infos);
    free(methods);
}

static void *storm(void *number)
{
    const int offsets[] = {10, 20};
    const uintptr_t stacks[][4] = {{3, 2, 1}, {2, 1}};
    for (int i = 0; i < STORM_EVENTS; i++) {
        load(0x100000 * (1 + (uintptr_t)number) + (uintptr_t)i * 32, 32, 2, offsets, stacks);
        callbacks.CompiledMethodUnload(&environment, method(1), (void *)0x10000);
    }
    return NULL;
}

static void tell_from_many_threads(void)
{
    pthread_t threads[STORM_THREADS];
    for (uintptr_t i = 0; i < STORM_THREADS; i++)
        pthread_create(&threads[i], NULL, storm, (void *)i);
    for (int i = 0; i < STORM_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *in_late_thread(void *nothing)
{
    is_late = true;
    tell_a_little();
    return nothing;
}

/* Returns when the other thread's event has arrived. It is written only after events were switched off. */
static void tell_late(void)
{
    pthread_create(&late, NULL, in_late_thread, NULL);
    sem_wait(&late_is_in);
}

static jvmtiError JNICALL generate(jvmtiEnv *env, jvmtiEvent event)
{
    (void)env;
    if (is("not all events"))
        return JVMTI_ERROR_INTERNAL;
    if (event == JVMTI_EVENT_DYNAMIC_CODE_GENERATED) {
        callbacks.DynamicCodeGenerated(&environment, "Interpreter", (void *)0x1000, 4096);
        return JVMTI_ERROR_NONE;
    }
    if (is("storm"))
        tell_from_many_threads();
    else if (is("late event") || is("stuck event"))
        tell_late();
    else if (is("deep"))
        load_deep(MOST_FRAMES);
    else if (is("too deep"))
        load_deep(MOST_FRAMES + 1);
    else if (is("large record"))
        load_much(2 * PLACES_OF_A_FULL_RECORD);
    else if (is("large map"))
        for (int i = 0; i < 20; i++)
            load_much(PLACES_OF_A_FULL_RECORD);
    else
        tell_a_little();
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL set_mode(jvmtiEnv *env, jvmtiEventMode mode, jvmtiEvent event, jthread thread, ...)
{
    (void)env, (void)thread;
    if (mode == JVMTI_DISABLE && event == JVMTI_EVENT_DYNAMIC_CODE_GENERATED && !atomic_exchange(&is_off, true))
        sem_post(&off);
    return mode == JVMTI_ENABLE && is("no events") ? JVMTI_ERROR_INTERNAL : JVMTI_ERROR_NONE;
}

static jint JNICALL get_env(JavaVM *vm, void **made, jint version)
{
    (void)vm;
    if (version == JNI_VERSION_1_2) {
        *made = &jni;
        return JNI_OK;
    }
    if (version != JVMTI_VERSION_1_2 || is("no JVMTI"))
        return JNI_EVERSION;
    count_allocated(1);
    *made = &environment;
    return JNI_OK;
}

int main(int count, char **arguments)
{
    static const struct JNIInvokeInterface_ invoke = {.GetEnv = get_env};
    static const struct JNINativeInterface_ native = {.DeleteLocalRef = delete_local_ref};
    static const jvmtiInterface_1 interface = {
        .AddCapabilities = add_capabilities, .SetEventCallbacks = set_callbacks, .Deallocate = deallocate,
        .SetEventNotificationMode = set_mode, .GenerateEvents = generate, .DisposeEnvironment = dispose,
        .CreateRawMonitor = create_monitor, .DestroyRawMonitor = destroy_monitor, .RawMonitorEnter = enter_monitor,
        .RawMonitorExit = exit_monitor, .GetMethodName = method_name, .GetMethodDeclaringClass = declaring_class,
        .GetClassSignature = class_signature};
    jni = &native;
    environment = &interface;
    if (count != 4)
        return 2;
    sem_init(&late_is_in, 0, 0);
    sem_init(&off, 0, 0);
    attach(arguments, &invoke);
    if (is("stuck event"))
        attach(arguments, &invoke);
    if (late != 0 && !is("stuck event"))
        pthread_join(late, NULL);
    printf("%d\n", allocated);
    return 0;
}
