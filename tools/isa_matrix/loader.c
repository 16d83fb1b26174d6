/* Runs kernels from a file of cases (tools/isa_matrix/case_file.py), each on buffers between unmapped pages.
 *
 * loader FILE: every case twice, with buffers that end, then start, at such a page.  Prints a line for each failure and
 * a summary; exit status 1 when one failed.  Needs no library but libc, so that an emulator has little to do.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST_ARGUMENTS = 64, F32 = 1, CANARY = 0xA5 };

typedef struct {
    uint32_t present, writable, kind; /* kind F32: written bytes are f32 and compared as numbers, so that -0 is 0 */
    int64_t size, pointer;            /* pointer: the argument's, from the first byte */
    const unsigned char *before, *wanted, *written;
} Argument;

typedef struct {
    unsigned char *pages, *data;
    size_t bytes; /* of the pages between the guards */
} Buffer;

static sigjmp_buf after_fault;
static volatile sig_atomic_t fault;
static void *volatile fault_address;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    fault = signal;
    fault_address = info->si_addr;
    siglongjmp(after_fault, 1);
}

static void die(const char *what) {
    perror(what);
    exit(2);
}

/* `slack` bytes of canaries lie between the buffer and the unmapped pages. */
static Buffer guarded(size_t size, int at_end, size_t slack) {
    Buffer b;
    b.bytes = (size + 2 * slack + PAGE - 1) / PAGE * PAGE;
    b.pages = mmap(NULL, b.bytes + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.pages == MAP_FAILED) die("mmap");
    b.data = b.pages + PAGE + (at_end ? b.bytes - size - slack : slack);
    memset(b.pages + PAGE, CANARY, b.bytes);
    if (mprotect(b.pages, PAGE, PROT_NONE) || mprotect(b.pages + PAGE + b.bytes, PAGE, PROT_NONE)) die("mprotect");
    return b;
}

static void release(Buffer b) { munmap(b.pages, b.bytes + 2 * PAGE); }

/* Whether a byte of the mapping outside of the buffer was changed. */
static int is_spoilt(Buffer b, size_t size) {
    for (unsigned char *at = b.pages + PAGE; at < b.pages + PAGE + b.bytes; at++)
        if ((at < b.data || at >= b.data + size) && *at != CANARY) return 1;
    return 0;
}

/* The first wrong byte, or -1. */
static int64_t first_wrong(const Argument *a, const unsigned char *after) {
    for (int64_t i = 0; i < a->size; i++) {
        if (!a->written[i]) {
            if (after[i] != a->before[i]) return i;
        } else if (a->kind == F32) {
            float found, wanted;
            memcpy(&found, after + i, 4);
            memcpy(&wanted, a->wanted + i, 4);
            if (!(found == wanted)) return i;
            i += 3;
        } else if (after[i] != a->wanted[i]) {
            return i;
        }
    }
    return -1;
}

static int run(const char *name, const unsigned char *code, size_t code_size, const Argument *arguments, uint32_t count,
               int at_end, size_t slack) {
    Buffer buffers[MOST_ARGUMENTS], frame = guarded(8 * count, 1, 0);
    size_t code_bytes = (code_size + PAGE - 1) / PAGE * PAGE;
    unsigned char *text = mmap(NULL, code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *placed = at_end ? "ending" : "starting";
    int failed = 0;
    if (text == MAP_FAILED) die("mmap");
    memcpy(text, code, code_size);
    if (mprotect(text, code_bytes, PROT_READ | PROT_EXEC)) die("mprotect");
    for (uint32_t i = 0; i < count; i++) {
        const Argument *a = &arguments[i];
        uint64_t address = (uint64_t)frame.pages; /* a guard: what is absent can only be prefetched */
        if (a->present) {
            buffers[i] = guarded(a->size, at_end, slack);
            memcpy(buffers[i].data, a->before, a->size);
            if (!a->writable && mprotect(buffers[i].pages + PAGE, buffers[i].bytes, PROT_READ)) die("mprotect");
            address = (uint64_t)buffers[i].data + a->pointer;
        }
        memcpy(frame.data + 8 * i, &address, 8);
    }
    if (sigsetjmp(after_fault, 1) == 0) {
        ((void (*)(const void *))text)(frame.data);
        for (uint32_t i = 0; i < count && !failed; i++) {
            int64_t at = arguments[i].present ? first_wrong(&arguments[i], buffers[i].data) : -1;
            if (at >= 0) {
                printf("FAIL %s (buffers %s at a guard page): byte %lld of argument %u\n", name, placed,
                       (long long)(at - arguments[i].pointer), i);
                failed = 1;
            }
            if (arguments[i].present && is_spoilt(buffers[i], arguments[i].size)) {
                printf("FAIL %s (buffers %s at a guard page): beside argument %u\n", name, placed, i);
                failed = 1;
            }
        }
    } else {
        printf("FAIL %s (buffers %s at a guard page): %s at %p, code at %p\n", name, placed, strsignal(fault),
               fault_address, (void *)text);
        failed = 1;
    }
    for (uint32_t i = 0; i < count; i++)
        if (arguments[i].present) release(buffers[i]);
    release(frame);
    munmap(text, code_bytes);
    return failed;
}

static const unsigned char *cursor, *end;

static const unsigned char *take(size_t bytes) {
    const unsigned char *here = cursor;
    if ((size_t)(end - cursor) < bytes) {
        fprintf(stderr, "loader: the file is cut off\n");
        exit(2);
    }
    cursor += bytes;
    return here;
}

static uint64_t word(void) {
    uint64_t value;
    memcpy(&value, take(8), 8);
    return value;
}

static void read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) die(path);
    size_t size = ftell(file);
    unsigned char *data = malloc(size + 1);
    rewind(file);
    if (!data || fread(data, 1, size, file) != size) die(path);
    fclose(file);
    cursor = data;
    end = data + size;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    unsigned cases = 0, failures = 0;
    if (argc != 2) return fprintf(stderr, "usage: loader FILE\n"), 2;
    for (int i = 0; i < 4; i++) sigaction((int[]){SIGSEGV, SIGBUS, SIGILL, SIGTRAP}[i], &action, NULL);
    read_file(argv[1]);
    for (; cursor < end; cases++) {
        Argument arguments[MOST_ARGUMENTS];
        size_t name_size = word(), code_size, count;
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)name_size, (const char *)take(name_size));
        code_size = word();
        const unsigned char *code = take(code_size);
        size_t slack = word();
        count = word();
        if (count > MOST_ARGUMENTS) return fprintf(stderr, "loader: %zu arguments\n", count), 2;
        for (size_t i = 0; i < count; i++) {
            Argument *a = &arguments[i];
            a->present = word(), a->writable = word(), a->kind = word(), a->size = word(), a->pointer = word();
            a->before = take(a->size), a->wanted = take(a->size), a->written = take(a->size);
        }
        int ending = run(name, code, code_size, arguments, count, 1, slack);
        failures += ending | run(name, code, code_size, arguments, count, 0, slack);
        fflush(stdout);
    }
    __builtin_cpu_init();
    printf("%u executed, each on buffers ending and starting at a guard page; %u failed; the CPU has avx2: %s, avx512f: %s\n",
           cases, failures, __builtin_cpu_supports("avx2") ? "yes" : "no",
           __builtin_cpu_supports("avx512f") ? "yes" : "no");
    return failures > 0;
}
