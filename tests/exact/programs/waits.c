/* Threads that wait for known times. The nanoseconds of each kind of wait are written to a file at the end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pair[2];
static long waited[3];

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void nap(long nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000L, nanoseconds % 1000000000L};
    nanosleep(&time, NULL);
}

__attribute__((noinline)) void *sleeps(void *unused) {
    for (int i = 0; i < 30; i++) {
        long start = now();
        nap(40000000);
        waited[0] += now() - start;
    }
    return unused;
}

__attribute__((noinline)) void *holds(void *unused) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        nap(50000000);
        pthread_mutex_unlock(&lock);
        nap(10000000);
    }
    return unused;
}

__attribute__((noinline)) void *contends(void *unused) {
    for (int i = 0; i < 20; i++) {
        long start = now();
        pthread_mutex_lock(&lock);
        waited[1] += now() - start;
        pthread_mutex_unlock(&lock);
        nap(15000000);
    }
    return unused;
}

__attribute__((noinline)) void *receives(void *unused) {
    char byte;
    for (int i = 0; i < 20; i++) {
        long start = now();
        if (read(pair[0], &byte, 1) != 1) break;
        waited[2] += now() - start;
    }
    return unused;
}

__attribute__((noinline)) void *sends(void *unused) {
    for (int i = 0; i < 20; i++) {
        nap(60000000);
        if (write(pair[1], "x", 1) != 1) break;
    }
    return unused;
}

int main(int count, char **arguments) {
    void *(*work[])(void *) = {sleeps, holds, contends, receives, sends};
    pthread_t threads[5];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || count != 2) return 1;
    for (int i = 0; i < 5; i++) pthread_create(&threads[i], NULL, work[i], NULL);
    /* Not pthread_join, whose wait would look like one for a lock. */
    for (int i = 0; i < 5; i++)
        while (pthread_tryjoin_np(threads[i], NULL) != 0) nap(10000000);
    FILE *told = fopen(arguments[1], "w");
    if (told == NULL) return 1;
    fprintf(told, "sleeps %ld\ncontends %ld\nreceives %ld\n", waited[0], waited[1], waited[2]);
    return fclose(told);
}
