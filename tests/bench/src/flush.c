/*
 * Loaded into a process with LD_PRELOAD, this library counts the process's flushes to disk and delays each of them, as on a
 * slower disk. FLUSH_COUNT_FILE names the file with the count, FLUSH_LONGER_MICROS is the delay in microseconds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int flush_function(int file);

static _Atomic unsigned long *flushes;
static struct timespec longer;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FLUSH_COUNT_FILE");
    const char *micros = getenv("FLUSH_LONGER_MICROS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *shared = mmap(NULL, sizeof *flushes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        flushes = shared == MAP_FAILED ? NULL : shared;
        close(file);
    }
    long count = micros ? atol(micros) : 0;
    longer.tv_sec = count / 1000000;
    longer.tv_nsec = count % 1000000 * 1000;
}

static int flush(const char *function, int file)
{
    flush_function *really = (flush_function *)dlsym(RTLD_NEXT, function);
    int outcome = really(file);
    struct timespec rest = longer;
    while (nanosleep(&rest, &rest) != 0) {
    }
    if (flushes) {
        atomic_fetch_add(flushes, 1);
    }
    return outcome;
}

int fsync(int file)
{
    return flush("fsync", file);
}

int fdatasync(int file)
{
    return flush("fdatasync", file);
}
