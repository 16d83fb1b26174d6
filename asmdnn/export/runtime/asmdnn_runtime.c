/* See asmdnn_runtime.h.  C11 with gcc's or clang's attributes.
 *
 * A network's object has tables, and a context's words as they are before addresses are known; asmdnn_create copies the
 * words, and fills in what depends on the number of threads.  All structures are made of words of 8 bytes, as
 * asmdnn/export/tables.py writes them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "asmdnn_runtime.h"

#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1       /* of the tables; changes with them */
#define ALIGNMENT 64   /* of scratch, whose sizes are multiples of it */
#define SPINS 4096     /* looks at a word before the CPU is given away */
#define FEW_SPINS 64   /* the same where threads share CPUs */
#define TILE_STATE 0x60000 /* of XCR0 */
#define IDLE_SPINS 8192 /* of a thread without work before it sleeps: some 0.2 ms */

enum { THREAD_NUM, NUM_THREADS, BARRIER, PARTS };  /* words of a context: asmdnn/generators/context.py */
enum { F32, F64, S8, U8, S16, U16, S32, U32, S64, U64, BOOL };  /* others are only passed on */

typedef struct { const char *name; int64_t leaf, subleaf, reg, bit, state; } feature;
typedef struct { const char *name; int64_t type, elements, bytes, unit, is_output, in_place; } tensor;
/* What kernels read and write: a tensor of the caller's, or, where room >= 0, elements as f32 in the scratch. */
typedef struct { const char *name; int64_t tensor, room, elements, least, limit, ignored, is_made; } buffer;
/* Where an output comes from, if kernels do not write it: a buffer, an input, or constant data. */
typedef struct { int64_t output, buffer, input; const void *data; } result;
typedef struct { int64_t slot, offset; } place;  /* a word of the context that points into a buffer, how far in */

struct asmdnn_network {
    int64_t format;
    const char *name;
    void (*executor)(void *);
    const int64_t *words;       /* [word_count], with the addresses of schedules, kernels, weights and constants */
    int64_t word_count;
    int64_t most_threads, most_parts;
    int64_t phases, first_share, phase_words;  /* word first_share + i * phase_words points to the shares of phase i */
    const int64_t *shares, *share_at;          /* share_at[most_parts][phases] */
    int64_t scratches;
    const int64_t *scratch_at, *scratch_bytes; /* scratch_at[most_parts][scratches], scratch_bytes[most_parts] */
    int64_t rooms_bytes;                       /* after them */
    int64_t feature_count, tensor_count, buffer_count, result_count;
    const feature *features;
    const tensor *tensors;
    const buffer *buffers;
    const result *results;
    const place *places;         /* those of buffer or scratch i are place_at[i] to place_at[i + 1] */
    const int64_t *place_at;
};

typedef struct {
    int size;
    unsigned patience;
    atomic_int left, arrived, sleepers, stops;
    atomic_uint round, meeting;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct asmdnn_context *context;
} team;

typedef struct { team *team; int number; pthread_t thread; } member;

struct asmdnn_context {
    atomic_int busy;
    const asmdnn_network *network;
    int parts;
    unsigned forks;      /* of this process's ancestors when it was made */
    int64_t *words;
    char *scratch, *rooms;
    void *own_scratch, **addresses;  /* of buffers */
    team team;
    member *members;     /* parts - 1, without the caller */
    int started;
};

/* OpenMP's, if the program has it. */
extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));
extern void GOMP_barrier(void) __attribute__((weak));
extern int omp_get_thread_num(void) __attribute__((weak));
extern int omp_get_num_threads(void) __attribute__((weak));

static __thread char said[400];
static __thread member *me;
static atomic_uint forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define SAY(...) (snprintf(said, sizeof said, __VA_ARGS__), (const char *)said)

static void in_child(void) { atomic_fetch_add(&forks, 1); }
static void notice_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static int has_openmp(void) { return GOMP_parallel && GOMP_barrier && omp_get_thread_num && omp_get_num_threads; }

static void relax(const team *t, unsigned spins) {
    if (spins % t->patience == t->patience - 1) sched_yield();
    else __builtin_ia32_pause();
}

static int thread_number(void) { return me->number; }
static int team_size(void) { return me->team->size; }

static void meet(void) {
    team *t = me->team;
    unsigned meeting = atomic_load(&t->meeting);
    if (atomic_fetch_add(&t->arrived, 1) + 1 == t->size) {
        atomic_store(&t->arrived, 0);
        atomic_fetch_add(&t->meeting, 1);
        return;
    }
    for (unsigned spins = 0; atomic_load(&t->meeting) == meeting; spins++) relax(t, spins);
}

static void await_round(team *t, unsigned seen) {
    for (unsigned spins = 0; spins < IDLE_SPINS; spins++) {
        if (atomic_load(&t->round) != seen) return;
        __builtin_ia32_pause();
    }
    pthread_mutex_lock(&t->mutex);
    atomic_fetch_add(&t->sleepers, 1);
    while (atomic_load(&t->round) == seen) pthread_cond_wait(&t->wake, &t->mutex);
    atomic_fetch_sub(&t->sleepers, 1);
    pthread_mutex_unlock(&t->mutex);
}

static void *work(void *argument) {
    team *t = ((member *)argument)->team;
    me = argument;
    for (unsigned seen = 0;; seen++) {
        await_round(t, seen);
        if (atomic_load(&t->stops)) return NULL;
        t->context->network->executor(t->context->words);
        atomic_fetch_sub(&t->left, 1);
    }
}

static void start_round(team *t) {
    atomic_fetch_add(&t->round, 1);
    if (!atomic_load(&t->sleepers)) return;
    pthread_mutex_lock(&t->mutex);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->mutex);
}

static void execute(asmdnn_context *c) {
    const asmdnn_network *n = c->network;
    if (c->parts > 1 && c->forks != atomic_load(&forks)) c->words[THREAD_NUM] = 0;  /* a child has no such threads */
    if (c->parts == 1 || !c->words[THREAD_NUM]) {
        n->executor(c->words);
    } else if (!c->members) {
        GOMP_parallel(n->executor, c->words, (unsigned)c->parts, 0);
    } else {
        member first = {&c->team, 0, 0}, *outer = me;
        me = &first;
        atomic_store(&c->team.left, c->parts - 1);
        start_round(&c->team);
        n->executor(c->words);
        for (unsigned spins = 0; atomic_load(&c->team.left); spins++) relax(&c->team, spins);
        me = outer;
    }
}

static const char *start_threads(asmdnn_context *c) {
    team *t = &c->team;
    sigset_t all, before;
    cpu_set_t own;
    int is_known = !sched_getaffinity(0, sizeof own, &own);
    t->patience = is_known && CPU_COUNT(&own) < c->parts ? FEW_SPINS : SPINS;
    t->size = c->parts;
    t->context = c;
    c->members = calloc((size_t)c->parts, sizeof *c->members);
    if (!c->members) return SAY("there is no memory for %d threads: use fewer", c->parts);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->wake, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  /* signals are the program's own threads' */
    int error = 0;
    for (; c->started < c->parts - 1 && !error; c->started += !error) {
        member *m = &c->members[c->started];
        *m = (member){t, c->started + 1, 0};
        error = pthread_create(&m->thread, NULL, work, m);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return SAY("thread %d cannot be started (%s): use fewer", c->started + 1, strerror(error));
    return NULL;
}

/* Linux hands out the tile registers of AMX on request, once a process: by arch_prctl, which libraries of C do not wrap. */
static int may_use_tiles(void) {
    long answer, number = 158, request = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, the component of XSAVE */
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(request), "S"(tile_data) : "rcx", "r11", "memory");
    return answer == 0;
}

static const char *missing_feature(const asmdnn_network *n) {
    unsigned regs[4] = {0}, low = 0, high, known = 0;
    int64_t leaf = -1, subleaf = -1;
    __cpuid(1, regs[0], regs[1], regs[2], regs[3]);
    if (regs[2] >> 27 & 1) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    for (int64_t i = 0; i < n->feature_count; i++) {
        const feature *f = &n->features[i];
        if (f->leaf != leaf || f->subleaf != subleaf) {
            leaf = f->leaf, subleaf = f->subleaf;
            known = (unsigned)__get_cpuid_count((unsigned)leaf, (unsigned)subleaf, regs, regs + 1, regs + 2, regs + 3);
        }
        if (!known || !(regs[f->reg] >> f->bit & 1) || (low & f->state) != (unsigned)f->state) return f->name;
        if (f->state & TILE_STATE && !may_use_tiles()) return f->name;
    }
    return NULL;
}

static int parts_of(const asmdnn_network *n, int threads) {
    if (threads <= 0 || threads > n->most_parts) return (int)n->most_parts;
    return threads;
}

size_t asmdnn_scratch_bytes(const asmdnn_network *n, int threads) {
    return n ? (size_t)(n->scratch_bytes[parts_of(n, threads) - 1] + n->rooms_bytes) : 0;
}

static void place_buffer(asmdnn_context *c, int64_t number, char *address) {
    const asmdnn_network *n = c->network;
    for (int64_t i = n->place_at[number]; i < n->place_at[number + 1]; i++)
        c->words[n->places[i].slot] = (int64_t)(address + n->places[i].offset);
}

static void fill_words(asmdnn_context *c) {
    const asmdnn_network *n = c->network;
    const int64_t *at = n->share_at + (c->parts - 1) * n->phases;
    memcpy(c->words, n->words, (size_t)n->word_count * sizeof *c->words);
    c->words[PARTS] = c->parts;
    for (int64_t i = 0; i < n->phases; i++)
        c->words[n->first_share + i * n->phase_words] = (int64_t)(n->shares + at[i]);
    for (int64_t i = 0; i < n->scratches; i++)
        place_buffer(c, n->buffer_count + i, c->scratch + n->scratch_at[(c->parts - 1) * n->scratches + i]);
    for (int64_t i = 0; i < n->buffer_count; i++)
        if (n->buffers[i].room >= 0) c->addresses[i] = c->rooms + n->buffers[i].room;
    if (c->parts > 1) {
        c->words[THREAD_NUM] = (int64_t)(c->members ? thread_number : omp_get_thread_num);
        c->words[NUM_THREADS] = (int64_t)(c->members ? team_size : omp_get_num_threads);
        c->words[BARRIER] = (int64_t)(c->members ? meet : GOMP_barrier);
    }
}

const char *asmdnn_create(asmdnn_context **context, const asmdnn_network *n, int threads, void *scratch) {
    if (!context || !n) return SAY("context and network must not be NULL");
    *context = NULL;
    if (n->format != FORMAT)
        return SAY("the object has tables of format %d, this runtime reads %d: export again, and compile the "
                   "asmdnn_runtime.c beside it", (int)n->format, FORMAT);
    if (threads < 0 || threads > n->most_threads)
        return SAY("threads is %d, %s was exported for 0 (all) to %d: export it for more", threads, n->name,
                   (int)n->most_threads);
    if ((uintptr_t)scratch % ALIGNMENT)
        return SAY("scratch is misaligned, it must start at a multiple of %d", ALIGNMENT);
    const char *lacks = missing_feature(n);
    if (lacks) return SAY("this CPU lacks %s, which %s needs: export it for a lower level", lacks, n->name);
    pthread_once(&once, notice_forks);
    asmdnn_context *c = calloc(1, sizeof *c);
    if (!c) return SAY("there is no memory for a context");
    c->network = n;
    c->parts = parts_of(n, threads);
    c->forks = atomic_load(&forks);
    size_t bytes = asmdnn_scratch_bytes(n, threads);
    c->words = calloc((size_t)n->word_count, sizeof *c->words);
    c->addresses = calloc((size_t)n->buffer_count + 1, sizeof *c->addresses);
    if (!scratch && bytes) scratch = c->own_scratch = aligned_alloc(ALIGNMENT, bytes);
    const char *wrong = NULL;
    if (!c->words || !c->addresses || (bytes && !scratch)) {
        wrong = SAY("there is no memory for a context of %s, which takes %zu bytes", n->name, bytes);
    } else {
        c->scratch = scratch;
        c->rooms = bytes ? c->scratch + n->scratch_bytes[c->parts - 1] : NULL;
        if (c->parts > 1 && !has_openmp()) wrong = start_threads(c);
    }
    if (wrong) {
        asmdnn_destroy(c);
        return wrong;
    }
    fill_words(c);
    *context = c;
    return NULL;
}

const char *asmdnn_destroy(asmdnn_context *c) {
    if (!c) return NULL;
    if (atomic_exchange(&c->busy, 1)) return SAY("the context is in use by another thread: wait for its call");
    if (c->members && c->forks == atomic_load(&forks)) {
        atomic_store(&c->team.stops, 1);
        start_round(&c->team);
        for (int i = 0; i < c->started; i++) pthread_join(c->members[i].thread, NULL);
        pthread_cond_destroy(&c->team.wake);
        pthread_mutex_destroy(&c->team.mutex);
    }
    free(c->members);
    free(c->own_scratch);
    free(c->addresses);
    free(c->words);
    free(c);
    return NULL;
}

static const char *check_tensors(const asmdnn_network *n, char *const *given) {
    for (int64_t i = 0; i < n->tensor_count; i++) {
        const tensor *t = &n->tensors[i];
        if (!given[i] && t->bytes) return SAY("%s is NULL, it must point to %lld bytes", t->name, (long long)t->bytes);
        if ((uintptr_t)given[i] % (uintptr_t)t->unit)
            return SAY("%s is misaligned, it must start at a multiple of %d", t->name, (int)t->unit);
    }
    for (int64_t i = 0; i < n->tensor_count; i++)
        for (int64_t j = 0; j < n->tensor_count && n->tensors[i].is_output; j++) {
            const tensor *o = &n->tensors[i], *t = &n->tensors[j];
            int is_in_place = given[i] == given[j] && (t->in_place == i || o->in_place == j);
            if (i != j && !is_in_place && given[i] < given[j] + t->bytes && given[j] < given[i] + o->bytes)
                return SAY("%s overlaps %s, give it memory of its own", o->name, t->name);
        }
    return NULL;
}

/* A type, and through which one f32 becomes it, as in numpy. */
#define TYPES(X)                                                                                      \
    X(F32, float, float) X(F64, double, double) X(BOOL, _Bool, _Bool) X(S8, int8_t, int32_t)          \
    X(U8, uint8_t, int32_t) X(S16, int16_t, int32_t) X(U16, uint16_t, int32_t) X(S32, int32_t, int32_t) \
    X(U32, uint32_t, int64_t) X(S64, int64_t, int64_t) X(U64, uint64_t, uint64_t)
#define ALL for (int64_t i = 0; i < count; i++)

static int is_outside(const buffer *b, int64_t value) {
    return (value < b->least || value >= b->limit) && value != b->ignored;
}

static int64_t first_outside(const buffer *b, const void *data, int64_t type, int64_t count, int64_t *value) {
#define CASE(TYPE, T, MIDDLE) \
    case TYPE: ALL if (is_outside(b, *value = (int64_t)((const T *)data)[i])) return i; break;
    switch (type) { TYPES(CASE) }
#undef CASE
    return -1;
}

static void to_f32(float *to, const void *from, int64_t type, int64_t count) {
#define CASE(TYPE, T, MIDDLE) case TYPE: ALL to[i] = (float)((const T *)from)[i]; break;
    switch (type) { TYPES(CASE) }
#undef CASE
}

static void from_f32(void *to, const float *from, int64_t type, int64_t count) {
#define CASE(TYPE, T, MIDDLE) case TYPE: ALL ((T *)to)[i] = (T)(MIDDLE)from[i]; break;
    switch (type) { TYPES(CASE) }
#undef CASE
}

static const char *check_indices(const buffer *b, const void *data, int64_t type) {
    int64_t value = 0, at = b->limit ? first_outside(b, data, type, b->elements, &value) : -1;
    if (at < 0) return NULL;
    return SAY("element %lld of %s is %lld, it must be from %lld to %lld", (long long)at, b->name, (long long)value,
               (long long)b->least, (long long)b->limit - 1);
}

static const char *run(asmdnn_context *c, char *const *given) {
    const asmdnn_network *n = c->network;
    const char *wrong = check_tensors(n, given);
    for (int64_t i = 0; i < n->buffer_count && !wrong; i++) {
        const buffer *b = &n->buffers[i];
        int64_t type = b->is_made ? F32 : n->tensors[b->tensor].type;
        if (b->room < 0) c->addresses[i] = given[b->tensor];
        else if (!b->is_made) to_f32(c->addresses[i], given[b->tensor], type, b->elements);
        if (!b->is_made) wrong = check_indices(b, given[b->tensor], type);
        place_buffer(c, i, c->addresses[i]);
    }
    if (wrong) return wrong;
    execute(c);
    for (int64_t i = 0; i < n->buffer_count && !wrong; i++)
        if (n->buffers[i].is_made) wrong = check_indices(&n->buffers[i], c->addresses[i], F32);
    for (int64_t i = 0; i < n->result_count && !wrong; i++) {
        const result *r = &n->results[i];
        const tensor *t = &n->tensors[r->output];
        if (r->buffer >= 0) from_f32(given[r->output], c->addresses[r->buffer], t->type, t->elements);
        else if (t->bytes) memcpy(given[r->output], r->input >= 0 ? given[r->input] : r->data, (size_t)t->bytes);
    }
    return wrong;
}

const char *asmdnn_run(asmdnn_context *c, const void *tensors) {
    if (!c || !tensors) return SAY("context and tensors must not be NULL");
    if (atomic_exchange(&c->busy, 1)) return SAY("the context is in use by another thread: create one for each thread");
    const char *wrong = run(c, tensors);
    atomic_store(&c->busy, 0);
    return wrong;
}
