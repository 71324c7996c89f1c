/* A process whose memory the kernel keeps locked: `ps` waits for it, and so does whoever reads its command line.
 *
 * `hanging FOLDER` mounts a file system on FOLDER and answers for it, but for the content of its one file. One thread
 * waits for a page of that file, and holds its process's memory for reading; another one wants to change it, and from
 * then on nobody else may read. It goes on until its file system ends: that is the process it prints the number of.
 * It ends with an error where the kernel waits without holding anything.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_NODE = 2, SIZE = 8192, FAILURES = 2, FOR_EVER = 1000 };

static void answer(int device, const struct fuse_in_header *asked, int error, const void *body, size_t size)
{
    char bytes[256];
    struct fuse_out_header head = {.len = sizeof head + size, .error = error, .unique = asked->unique};
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, body, size);
    if (write(device, bytes, head.len) < 0 && errno != ENOENT)
        err(1, "answer");
}

static struct fuse_attr attributes(unsigned long node)
{
    mode_t mode = node == FILE_NODE ? S_IFREG | 0444 : S_IFDIR | 0555;
    return (struct fuse_attr){.ino = node, .mode = mode, .nlink = 1, .size = SIZE};
}

/* The kernel reads ahead, then the page, both with the memory let go; after failures it tries again and holds it. */
static void serve(int device, int hangs)
{
    static char request[1 << 17];
    int failures = 0;
    while (read(device, request, sizeof request) > 0) {
        const struct fuse_in_header *asked = (void *)request;
        const struct fuse_init_in *greeting = (void *)(request + sizeof *asked);
        struct fuse_init_out welcome = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = 4096};
        struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
        struct fuse_attr_out told = {.attr = attributes(asked->nodeid)};
        struct fuse_open_out opened = {0};
        entry.entry_valid = entry.attr_valid = told.attr_valid = FOR_EVER;
        if (greeting->minor < welcome.minor && asked->opcode == FUSE_INIT)
            welcome.minor = greeting->minor;
        switch (asked->opcode) {
        case FUSE_INIT: answer(device, asked, 0, &welcome, sizeof welcome); break;
        case FUSE_LOOKUP: answer(device, asked, 0, &entry, sizeof entry); break;
        case FUSE_GETATTR: answer(device, asked, 0, &told, sizeof told); break;
        case FUSE_OPEN: answer(device, asked, 0, &opened, sizeof opened); break;
        case FUSE_READ:
            if (failures++ < FAILURES)
                answer(device, asked, -EIO, "", 0);
            else
                close(hangs);
            break;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET: break;
        default: answer(device, asked, -ENOSYS, "", 0);
        }
    }
}

static void *touch(void *page)
{
    return (void *)(long)*(volatile char *)page;
}

static volatile pid_t changer;

/* Once nothing more is to come through the pipe: the other one waits. */
static void *change(void *pipe)
{
    char end;
    while (read(*(int *)pipe, &end, 1) > 0)
        ;
    changer = gettid();
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errx(1, "the memory is free to be changed");
}

/* By its letter of /proc/self/task/ID/stat. Nothing here may need a new page. */
static void see_it_wait(volatile pid_t *thread)
{
    char path[64], line[128], state = 0;
    while (state != 'D') {
        usleep(1000);
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", *thread);
        int file = open(path, O_RDONLY);
        ssize_t size = file < 0 ? 0 : read(file, line, sizeof line - 1);
        close(file);
        if (size <= 0)
            continue;
        line[size] = 0;
        state = strrchr(line, ')')[2];
    }
}

static void begin(void *(*work)(void *), void *with)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, with))
        errx(1, "no thread");
}

int main(int count, char **arguments)
{
    char path[4096], options[128], said[64];
    if (count != 2)
        errx(2, "usage: hanging FOLDER");
    int device = open("/dev/fuse", O_RDWR);
    if (device < 0)
        err(1, "/dev/fuse");
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
    if (mount("hanging", arguments[1], "fuse", 0, options))
        err(1, "mount");
    int hangs[2];
    if (pipe(hangs))
        err(1, "pipe");
    pid_t server = fork();
    if (server == 0) {
        serve(device, hangs[1]);
        _exit(0);
    }
    close(device);
    close(hangs[1]);
    snprintf(path, sizeof path, "%s/file", arguments[1]);
    int file = open(path, O_RDONLY);
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        err(1, "%s", path);
    begin(change, &hangs[0]);
    begin(touch, page);
    see_it_wait(&changer);
    write(1, said, (size_t)snprintf(said, sizeof said, "%d\n", server));
    pause();
}
