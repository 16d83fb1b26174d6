// Calls the exported network `scorer`: 16 numbers from standard input, 4 scores to standard output.
package main

/*
#cgo LDFLAGS: ${SRCDIR}/scorer.o -lpthread
#include <stdlib.h>
#include "scorer.h"
*/
import "C"

import (
	"fmt"
	"log"
	"runtime"
	"unsafe"
)

// The runtime returns NULL, or what is wrong in one sentence, which stays until the thread's next call.
func check(wrong *C.char) {
	if wrong != nil {
		log.Fatal(C.GoString(wrong))
	}
}

func main() {
	runtime.LockOSThread() // so that the sentence is read on the thread of the call

	// Memory of C: a struct that C gets must not point to memory that Go may move.
	x, scores := (*[16]float32)(C.calloc(16, 4)), (*[4]float32)(C.calloc(4, 4))
	defer C.free(unsafe.Pointer(x))
	defer C.free(unsafe.Pointer(scores))
	for i := range x {
		if _, failed := fmt.Scan(&x[i]); failed != nil {
			log.Fatal("16 numbers are needed: ", failed)
		}
	}

	var context *C.asmdnn_context
	check(C.scorer_create(&context, 0)) // 0 threads: as many as the network was exported for
	tensors := C.struct_scorer_tensors{x: (*C.float)(&x[0]), scores: (*C.float)(&scores[0])}
	check(C.scorer_run(context, &tensors))
	for _, score := range scores {
		fmt.Println(score)
	}
	check(C.asmdnn_destroy(context))
}
