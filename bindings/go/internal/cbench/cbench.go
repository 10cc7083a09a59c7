// Package cbench measures what the library itself takes, for benchmarks to compare with. Tests cannot use C.
package cbench

/*
#cgo pkg-config: fairq
#include <fairq.h>

static int fqgo_pairs(uintptr_t limiter, uint64_t pairs) {
    for (; pairs > 0; pairs--) {
        fq_permit *permit = NULL;
        if (fq_acquire((const fq_limiter *)limiter, NULL, NULL, &permit, NULL) != FQ_OK) {
            return 0;
        }
        fq_permit_free(permit);
    }
    return 1;
}
*/
import "C"

// Pairs takes and gives back so many permits in a loop in C. Not ok: one was refused.
func Pairs(limiter uintptr, pairs int) (ok bool) {
	return C.fqgo_pairs(C.uintptr_t(limiter), C.uint64_t(pairs)) != 0
}
