/* Two threads, c-worker-1 and c-worker-2, that spend their CPU time in known shares: 50 % hot, 30 % warm (below outer
 * and middle), 20 % kernel; a third, c-sleeper, sleeps in nap, a fourth, c-reader, reads from a silent pipe in read_pipe,
 * and a fifth, c-locker, waits for a mutex in lock_mutex. Protocol as in Burner.java: "ready pid=N", a line on stdin asks
 * for the counters, the end of stdin ends it. The argument is the load of each worker, 0.4 of a core. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* The C library keeps no frame pointers: who calls it is missing from a stack. So what shall be seen calls another. */
#define NOINLINE __attribute__((noinline, noclone))
#define ROUND 50000
#define WORKERS 2

enum { HOT, WARM, KERNEL, KINDS };

static const int percent[KINDS] = {50, 30, 20};
static long used[WORKERS][KINDS];
static long naps;
static double load = 0.4;
static volatile unsigned long sink;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static long nanos(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static long cpu(void) { return nanos(CLOCK_THREAD_CPUTIME_ID); }

NOINLINE static void hot(long until) {
    do {
        unsigned long x = (unsigned long)until;
        for (int i = 0; i < ROUND; i++) x = x * 6364136223846793005UL + 1442695040888963407UL;
        sink = x;
    } while (cpu() < until);
}

NOINLINE static void warm(long until) {
    do {
        unsigned long x = (unsigned long)until | 1;
        for (int i = 0; i < ROUND; i++) x = (x ^ (x << 13)) + (x >> 7);
        sink = x;
    } while (cpu() < until);
}

NOINLINE static long middle(long until) {
    warm(until);
    return until - 1;
}

NOINLINE static long outer(long until) { return middle(until) + 1; }

NOINLINE static void fill(char *bytes, size_t size, int random) {
    if (read(random, bytes, size) <= 0) abort();
}

NOINLINE static void kernel(long until, int random) {
    static char bytes[WORKERS][64 * 1024];
    do {
        fill(bytes[random & (WORKERS - 1)], sizeof bytes[0], random);
    } while (cpu() < until);
}

static int behind(const long *mine) {
    int least = 0;
    for (int kind = 1; kind < KINDS; kind++)
        if (mine[kind] * percent[least] < mine[least] * percent[kind]) least = kind;
    return least;
}

NOINLINE static void pause_for(long wait) {
    struct timespec time = {wait / 1000000000L, wait % 1000000000L};
    nanosleep(&time, NULL);
}

NOINLINE static void slice(long *mine, int random, unsigned *seed) {
    long before = cpu(), until = before + 400000 + rand_r(seed) % 1400000;
    int kind = behind(mine);
    if (kind == HOT) hot(until);
    else if (kind == WARM) outer(until);
    else kernel(until, random);
    __atomic_add_fetch(&mine[kind], cpu() - before, __ATOMIC_RELAXED);
}

static void *work(void *argument) {
    long number = (long)argument, begin = nanos(CLOCK_MONOTONIC), first = cpu();
    char name[16];
    snprintf(name, sizeof name, "c-worker-%ld", number + 1);
    prctl(PR_SET_NAME, name);
    int random = open("/dev/urandom", O_RDONLY);
    unsigned seed = (unsigned)begin;
    for (;;) {
        slice(used[number], random, &seed);
        long ahead = (long)((double)(cpu() - first) / load) - (nanos(CLOCK_MONOTONIC) - begin);
        if (ahead > 5000000) pause_for(ahead);
    }
    return NULL;
}

NOINLINE static void nap(void) { pause_for(50000000); }

static void *sleeper(void *nothing) {
    prctl(PR_SET_NAME, "c-sleeper");
    for (;;) {
        nap();
        __atomic_add_fetch(&naps, 1, __ATOMIC_RELAXED);
    }
    return nothing;
}

NOINLINE static void read_byte(int end, char *byte) { sink += (unsigned long)read(end, byte, 1); }

NOINLINE static void read_pipe(int end) {
    char byte;
    read_byte(end, &byte);
}

/* A byte comes every 100 ms: a wait that never ends is not seen by who records switches. */
static void *reader(void *pipe) {
    prctl(PR_SET_NAME, "c-reader");
    for (;;) read_pipe(((int *)pipe)[0]);
    return NULL;
}

NOINLINE static void enter(void) { pthread_mutex_lock(&held); }

NOINLINE static void lock_mutex(void) {
    enter();
    pthread_mutex_unlock(&held);
}

static void *locker(void *nothing) {
    prctl(PR_SET_NAME, "c-locker");
    for (;;) {
        lock_mutex();
        pause_for(1000000);
    }
    return nothing;
}

NOINLINE static void hold(void) {
    pthread_mutex_lock(&held);
    pause_for(99000000);
    pthread_mutex_unlock(&held);
    pause_for(1000000);
}

static void *holder(void *pipe) {
    prctl(PR_SET_NAME, "c-holder");
    for (;;) {
        hold();
        if (write(((int *)pipe)[1], "x", 1) != 1) abort();
    }
    return NULL;
}

static void report(void) {
    long sums[KINDS] = {0};
    for (int worker = 0; worker < WORKERS; worker++)
        for (int kind = 0; kind < KINDS; kind++) sums[kind] += __atomic_load_n(&used[worker][kind], __ATOMIC_RELAXED);
    long slept = __atomic_load_n(&naps, __ATOMIC_RELAXED);
    printf("counters hot=%ld warm=%ld kernel=%ld naps=%ld process.ns=%ld\n", sums[HOT], sums[WARM], sums[KERNEL], slept,
           nanos(CLOCK_PROCESS_CPUTIME_ID));
    fflush(stdout);
}

static void start(void *(*task)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, task, argument)) abort();
}

int main(int count, char **arguments) {
    static int silent[2];
    if (count > 1) load = atof(arguments[1]);
    if (pipe(silent)) abort();
    for (long number = 0; number < WORKERS; number++) start(work, (void *)number);
    start(sleeper, NULL);
    start(reader, silent);
    start(holder, silent);
    start(locker, NULL);
    printf("ready pid=%d\n", getpid());
    fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin)) report();
    report();
    _exit(0);
}
