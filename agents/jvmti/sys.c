#include "sys.h"

/* Numbers and structures of the kernel's interface, for each architecture. */
#if defined(__x86_64__)

enum {
    NR_WRITE = 1, NR_CLOSE = 3, NR_FSTAT = 5, NR_LSEEK = 8, NR_MMAP = 9, NR_MUNMAP = 11, NR_PWRITE = 18,
    NR_MREMAP = 25, NR_FTRUNCATE = 77, NR_CLOCK_GETTIME = 228, NR_CLOCK_NANOSLEEP = 230, NR_OPENAT = 257
};
enum { NO_FOLLOW = 0400000 };

struct file_status {
    uint64_t device, inode, links;
    uint32_t mode, user, group, padding;
    uint64_t special_device;
    int64_t size;
    uint64_t rest[11];
};

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)

enum {
    NR_FTRUNCATE = 46, NR_OPENAT = 56, NR_CLOSE = 57, NR_LSEEK = 62, NR_WRITE = 64, NR_PWRITE = 68, NR_FSTAT = 80,
    NR_CLOCK_GETTIME = 113, NR_CLOCK_NANOSLEEP = 115, NR_MUNMAP = 215, NR_MREMAP = 216, NR_MMAP = 222
};
enum { NO_FOLLOW = 0100000 };

struct file_status {
    uint64_t device, inode;
    uint32_t mode, links, user, group;
    uint64_t special_device, padding;
    int64_t size;
    uint64_t rest[9];
};

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

#else
#error "only x86-64 and arm64 are known"
#endif

enum { HERE = -100, WRITE_ONLY = 01, NO_WAITING = 04000, CLOSE_ON_EXEC = 02000000 };
enum { KIND_OF_FILE = 0170000, REGULAR = 0100000 };
enum { READ_WRITE = 3, PRIVATE_ANONYMOUS = 0x22, MAY_MOVE = 1 };
enum { LAST_ERROR = 4095 };
enum { ABSOLUTE = 1, NANOSECONDS = 1000000000 };

int sys_open(const char *path)
{
    return (int)call(NR_OPENAT, HERE, (long)path, WRITE_ONLY | NO_FOLLOW | NO_WAITING | CLOSE_ON_EXEC, 0, 0, 0);
}

bool sys_is_new_file(int fd)
{
    struct file_status status;
    if (call(NR_FSTAT, fd, (long)&status, 0, 0, 0, 0) != 0)
        return false;
    return (status.mode & KIND_OF_FILE) == REGULAR && status.links == 1 && status.size == 0;
}

bool sys_has_name(int fd)
{
    struct file_status status;
    return call(NR_FSTAT, fd, (long)&status, 0, 0, 0, 0) == 0 && status.links > 0;
}

long sys_write(int fd, const void *from, size_t size)
{
    return call(NR_WRITE, fd, (long)from, (long)size, 0, 0, 0);
}

long sys_write_at(int fd, const void *from, size_t size, uint64_t offset)
{
    return call(NR_PWRITE, fd, (long)from, (long)size, (long)offset, 0, 0);
}

void sys_empty(int fd)
{
    call(NR_FTRUNCATE, fd, 0, 0, 0, 0, 0);
    call(NR_LSEEK, fd, 0, 0, 0, 0, 0);
}

void sys_close(int fd)
{
    call(NR_CLOSE, fd, 0, 0, 0, 0, 0);
}

static void *memory_or_null(long result)
{
    return (unsigned long)result >= (unsigned long)-LAST_ERROR ? NULL : (void *)result;
}

void *sys_map(size_t size)
{
    return memory_or_null(call(NR_MMAP, 0, (long)size, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0));
}

void *sys_remap(void *memory, size_t size, size_t wanted)
{
    return memory_or_null(call(NR_MREMAP, (long)memory, (long)size, (long)wanted, MAY_MOVE, 0, 0));
}

void sys_unmap(void *memory, size_t size)
{
    call(NR_MUNMAP, (long)memory, (long)size, 0, 0, 0, 0);
}

int64_t sys_clock(enum clock clock)
{
    int64_t time[2] = {0, 0};
    call(NR_CLOCK_GETTIME, clock, (long)time, 0, 0, 0, 0);
    return time[0] * NANOSECONDS + time[1];
}

void sys_sleep_until(int64_t nanoseconds)
{
    const int64_t wanted[2] = {nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS};
    call(NR_CLOCK_NANOSLEEP, MONOTONIC, ABSOLUTE, (long)wanted, 0, 0, 0);
}

/*
 * The compiler may replace plain assignments and loops by calls of these four, whatever its options are.
 * They are compiled so that it does not do so in their own loops (see build.sh).
 */
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *one, const void *other, size_t size);

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    while (size-- > 0)
        *target++ = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    if (target <= source)
        return memcpy(to, from, size);
    while (size-- > 0)
        target[size] = source[size];
    return to;
}

void *memset(void *to, int value, size_t size)
{
    unsigned char *target = to;
    while (size-- > 0)
        *target++ = (unsigned char)value;
    return to;
}

int memcmp(const void *one, const void *other, size_t size)
{
    const unsigned char *left = one, *right = other;
    for (; size > 0; size--, left++, right++)
        if (*left != *right)
            return *left < *right ? -1 : 1;
    return 0;
}
