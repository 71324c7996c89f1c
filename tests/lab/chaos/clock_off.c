/* Loaded before libc: the program's wall clock is off by CLOCK_OFF seconds, from CLOCK_OFF_AFTER seconds after its
 * first look at it. Monotonic clocks are unchanged, as when a machine's clock is set. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static time_t first;
    struct timespec since;
    const char *off = getenv("CLOCK_OFF"), *after = getenv("CLOCK_OFF_AFTER");
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &since);
    if (!first) first = since.tv_sec;
    if ((clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && off && after &&
        since.tv_sec - first >= atol(after))
        now->tv_sec += atol(off);
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
