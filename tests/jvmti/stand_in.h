/*
 * What stand-ins for a JVM have in common. Each is called as
 *
 *     stand_in LIBRARY OPTIONS SCENARIO
 *
 * It loads the library, calls Agent_OnAttach as a JVM does and prints the results, one a line, and last the number of
 * things that the library did not give back.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jvmti.h>

static const char *scenario;
static int allocated; /* what the library was given and has not given back */
static jvmtiEnv environment;
static JNIEnv jni;

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void count_allocated(int more)
{
    __atomic_add_fetch(&allocated, more, __ATOMIC_SEQ_CST);
}

static jvmtiError JNICALL deallocate(jvmtiEnv *env, unsigned char *memory)
{
    (void)env;
    if (memory != NULL)
        count_allocated(-1);
    free(memory);
    return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL dispose(jvmtiEnv *env)
{
    (void)env;
    count_allocated(-1);
    return JVMTI_ERROR_NONE;
}

/* Calls Agent_OnAttach of the library and prints what it returns. */
static void attach(char **words, const struct JNIInvokeInterface_ *invoke)
{
    scenario = words[3];
    void *library = dlopen(words[1], RTLD_NOW);
    jint (*on_attach)(JavaVM *, char *, void *);
    *(void **)&on_attach = library == NULL ? NULL : dlsym(library, "Agent_OnAttach");
    if (on_attach == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    JavaVM vm = invoke;
    printf("%d\n", on_attach(&vm, words[2], NULL));
}
