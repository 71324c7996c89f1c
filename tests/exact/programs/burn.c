/* Burns in functions of known names, through memcmp@plt, with children: each forks, burns and ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile long sink;

__attribute__((noinline)) static long leaf(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += i * sink;
    return sum;
}

__attribute__((noinline)) long middle(long n, const char *text) {
    sink += memcmp(text, "somewhere else", strlen(text));
    return leaf(n) + 1;
}

__attribute__((noinline)) void burn(double seconds) {
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    char *page = malloc(1 << 22);
    while (clock() < end) {
        sink += middle(20000, "somewhere");
        memset(page, (int)sink, 1 << 20);
    }
    free(page);
}

int main(void) {
    for (int child = 0; child < 3; child++) {
        if (fork() == 0) {
            burn(0.15);
            _exit(0);
        }
    }
    burn(0.3);
    if (fork() == 0) execl("/bin/dd", "dd", "if=/dev/zero", "of=/dev/null", "bs=256k", "count=3000", "status=none", NULL);
    while (wait(NULL) > 0) { }
    return 0;
}
