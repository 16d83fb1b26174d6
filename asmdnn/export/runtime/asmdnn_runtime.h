/* What runs networks and primitives that `asmdnn export` wrote: C99 and C++, Linux on x86-64.
 *
 * A network is constant data: any number of contexts may use it.  A context has a call's memory and its threads, and is
 * one thread's at a time.  Functions return NULL, or what is wrong in one sentence, which stays until the calling
 * thread's next call of a function here.  Link with -pthread.
 */
#ifndef ASMDNN_RUNTIME_H
#define ASMDNN_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct asmdnn_network asmdnn_network;
typedef struct asmdnn_context asmdnn_context;

/* The temporary memory of a call on so many threads, in bytes. */
size_t asmdnn_scratch_bytes(const asmdnn_network *network, int threads);

/* A context for calls on `threads` threads, 0 for as many as the network was exported for.  Checks that this CPU has
 * the instructions.  A program that is linked with OpenMP lends its threads; without it, threads - 1 are started.
 * scratch: at a multiple of 64, asmdnn_scratch_bytes of it, for this context alone; or NULL to have it allocated. */
const char *asmdnn_create(asmdnn_context **context, const asmdnn_network *network, int threads, void *scratch);

/* Run.  tensors: the struct of the network's header: inputs, then outputs, dense and aligned to their elements.  Outputs
 * share no byte with other tensors, unless the header says so.  Indices are checked; when one is wrong, what outputs
 * hold is unspecified.  Results are complete when it returns, and have equal bits for every number of threads. */
const char *asmdnn_run(asmdnn_context *context, const void *tensors);

/* Ends its threads and frees its memory, but not a scratch that was given. */
const char *asmdnn_destroy(asmdnn_context *context);

#ifdef __cplusplus
}
#endif

#endif
