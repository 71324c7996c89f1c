/* PID 1 of the lab's pods: `init` waits to be ended, `init COMMAND...` runs a command as tini would. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void pass_on(int number) {
    if (child > 0) kill(child, number);
    else _exit(0);
}

static int exit_code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int count, char **words) {
    signal(SIGTERM, pass_on);
    signal(SIGINT, pass_on);
    if (count > 1) {
        child = fork();
        if (child == 0) {
            execvp(words[1], words + 1);
            perror(words[1]);
            _exit(127);
        }
    }
    for (;;) {
        int status;
        pid_t ended = wait(&status);
        if (ended > 0 && ended == child) return exit_code(status);
        if (ended < 0 && errno == ECHILD) pause(); /* orphans may come yet */
    }
}
