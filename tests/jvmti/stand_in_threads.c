/*
 * Stands in for a JVM with many threads, under musl, on arm64, and when JVMTI fails: loads the library of threads'
 * names and gives it threads that change from poll to poll.
 *
 * Thread T is called "task T" in the first poll that has it, and "task T again" in the next one. Scenarios: "" (three
 * threads), "still" (names never change), "churn" (three thousand new threads in every other poll), "crowd" (7000
 * threads), "long" (3000 threads with names of 300 characters), "no thread", "dying" (the third poll fails; in "churn"
 * and "crowd" the seventh), "no frame" (in the third poll the JVM has no memory, and throws). What is not given back is
 * counted when the library's thread has ended, with exceptions that were not cleared.
 */
#define _GNU_SOURCE
#include "stand_in.h"

static int polls;
static pthread_t follower;
static bool started;
static jvmtiStartFunction function;
static void *argument;

static jvmtiError JNICALL all_threads(jvmtiEnv *env, jint *count, jthread **threads)
{
    (void)env;
    uintptr_t first = is("churn") ? 3000 * (uintptr_t)(polls / 2) + 1 : 1;
    polls++;
    if ((is("dying") && polls == 3) || ((is("churn") || is("crowd")) && polls == 7))
        return JVMTI_ERROR_WRONG_PHASE;
    *count = is("churn") || is("long") ? 3000 : is("crowd") ? 7000 : 3;
    *threads = malloc((size_t)*count * sizeof **threads);
    count_allocated(1);
    for (jint i = 0; i < *count; i++)
        (*threads)[i] = (jthread)(first + (uintptr_t)i);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL thread_info(jvmtiEnv *env, jthread thread, jvmtiThreadInfo *info)
{
    (void)env;
    const char *again = polls % 2 == 0 && !is("still") ? " again" : "";
    if (asprintf(&info->name, "task %lu%s%*s", (unsigned long)thread, again, is("long") ? 300 : 0, "") < 0)
        abort();
    count_allocated(1);
    return JVMTI_ERROR_NONE;
}

static void *run(void *nothing)
{
    function(&environment, &jni, argument);
    return nothing;
}

static jvmtiError JNICALL run_thread(jvmtiEnv *env, jthread thread, jvmtiStartFunction start, const void *with,
                                     jint priority)
{
    (void)env, (void)thread, (void)priority;
    if (is("no thread"))
        return JVMTI_ERROR_OUT_OF_MEMORY;
    function = start;
    argument = (void *)with;
    started = pthread_create(&follower, NULL, run, NULL) == 0;
    return started ? JVMTI_ERROR_NONE : JVMTI_ERROR_INTERNAL;
}

static jclass JNICALL find_class(JNIEnv *env, const char *name)
{
    (void)env;
    return strcmp(name, "java/lang/Thread") == 0 ? (jclass)1 : NULL;
}

static jfieldID JNICALL field_id(JNIEnv *env, jclass class, const char *name, const char *type)
{
    (void)env, (void)class;
    return strcmp(name, "tid") == 0 && strcmp(type, "J") == 0 ? (jfieldID)1 : NULL;
}

static jmethodID JNICALL method_id(JNIEnv *env, jclass class, const char *name, const char *type)
{
    (void)env, (void)class, (void)name, (void)type;
    return (jmethodID)1;
}

static jstring JNICALL new_text(JNIEnv *env, const char *text)
{
    (void)env;
    return (jstring)text;
}

static jobject JNICALL new_object(JNIEnv *env, jclass class, jmethodID constructor, ...)
{
    (void)env, (void)constructor;
    return class;
}

static jlong JNICALL thread_id(JNIEnv *env, jobject thread, jfieldID field)
{
    (void)env, (void)field;
    return (jlong)(uintptr_t)thread;
}

static jint JNICALL push_frame(JNIEnv *env, jint capacity)
{
    (void)env, (void)capacity;
    count_allocated(1); /* the frame, or the exception */
    return is("no frame") && polls == 2 ? JNI_ENOMEM : JNI_OK;
}

static void JNICALL exception_clear(JNIEnv *env)
{
    (void)env;
    count_allocated(-1);
}

static jobject JNICALL pop_frame(JNIEnv *env, jobject result)
{
    (void)env;
    count_allocated(-1);
    return result;
}

static jboolean JNICALL exception_check(JNIEnv *env)
{
    (void)env;
    return JNI_FALSE;
}

static jint JNICALL get_env(JavaVM *vm, void **env, jint version)
{
    (void)vm;
    bool jvmti = version == JVMTI_VERSION_1_2;
    count_allocated(jvmti);
    *env = jvmti ? (void *)&environment : (void *)&jni;
    return JNI_OK;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    const jvmtiInterface_1 jvmti_functions = {.GetAllThreads = all_threads,
                                              .GetThreadInfo = thread_info,
                                              .Deallocate = deallocate,
                                              .DisposeEnvironment = dispose,
                                              .RunAgentThread = run_thread};
    const struct JNINativeInterface_ jni_functions = {.FindClass = find_class,
                                                      .GetFieldID = field_id,
                                                      .GetMethodID = method_id,
                                                      .NewStringUTF = new_text,
                                                      .NewObject = new_object,
                                                      .GetLongField = thread_id,
                                                      .PushLocalFrame = push_frame,
                                                      .PopLocalFrame = pop_frame,
                                                      .ExceptionCheck = exception_check,
                                                      .ExceptionClear = exception_clear};
    const struct JNIInvokeInterface_ vm_functions = {.GetEnv = get_env};
    environment = &jvmti_functions;
    jni = &jni_functions;
    attach(words, &vm_functions);
    if (started)
        pthread_join(follower, NULL);
    printf("%d\n", allocated);
    return 0;
}
