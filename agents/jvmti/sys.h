/*
 * The kernel, called without a C library: the same file then loads on any glibc and on musl.
 * Results are as the kernel gives them: negative ones are error numbers.
 */
#ifndef JVMTI_SYS_H
#define JVMTI_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYS_INTERRUPTED (-4) /* EINTR */

/* Opens a file for writing. Follows no link, waits for nobody at a pipe, is not inherited by children. */
int sys_open(const char *path);

/* Whether an open file is a regular one without content and without a second name. */
bool sys_is_new_file(int fd);

/* Whether an open file still has a name: it has not been deleted. */
bool sys_has_name(int fd);

long sys_write(int fd, const void *from, size_t size);

/* Writes over what is at an offset; the next sys_write goes where it would have gone. */
long sys_write_at(int fd, const void *from, size_t size, uint64_t offset);

/* Makes a file empty and goes back to its begin. */
void sys_empty(int fd);

void sys_close(int fd);

/* Zeroed memory in whole pages, or NULL. */
void *sys_map(size_t size);

/* The same memory with another size, perhaps elsewhere, or NULL: then the old is as it was. */
void *sys_remap(void *memory, size_t size, size_t wanted);

void sys_unmap(void *memory, size_t size);

enum clock { WALL = 0, MONOTONIC = 1, THREAD = 3 /* processor time of the calling thread */ };

/* Nanoseconds. */
int64_t sys_clock(enum clock clock);

/* Sleeps until a time of the monotonic clock, or until a signal comes. */
void sys_sleep_until(int64_t nanoseconds);

#endif
