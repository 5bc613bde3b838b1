// The only image of the lab: waits and reaps as a sandbox must; with `hello N` it prints a line,
// sleeps N seconds and ends.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) { _exit(signal == SIGTERM ? 0 : 1); }

static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
}

int main(int count, char **words) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    if (count > 1 && strcmp(words[1], "hello") == 0) {
        puts("hello from the pod");
        fflush(stdout);
        sleep(count > 2 ? atoi(words[2]) : 0);
        return 0;
    }
    signal(SIGCHLD, reap);
    for (;;) pause();
}
