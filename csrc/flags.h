/* Floating-point exception flags.
 *
 * On x86-64 arithmetic raises flags in MXCSR; libm and feraiseexcept() may also use the x87 status word, which only
 * kernels that say so (x87_flags) make us look at. NumPy clears and tests the same four flags around each loop. */
#ifndef TIERUP_FLAGS_H
#define TIERUP_FLAGS_H

#include <fenv.h>
#include <stdbool.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    FP_INVALID = FE_INVALID,
    FP_DIVIDE = FE_DIVBYZERO,
    FP_OVERFLOW = FE_OVERFLOW,
    FP_UNDERFLOW = FE_UNDERFLOW,
    FP_ALL = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW
};

/* The raised flags, which are clear afterwards. */
static inline int fp_take(bool x87)
{
#if defined(__x86_64__)
    unsigned csr = _mm_getcsr();
    int raised = (int)(csr & FP_ALL);
    if (raised)
        _mm_setcsr(csr & ~(unsigned)FP_ALL);
    if (x87) {
        unsigned short status;
        __asm__ volatile("fnstsw %0" : "=a"(status));
        if (status & FP_ALL) {
            raised |= status & FP_ALL;
            __asm__ volatile("fnclex");
        }
    }
    return raised;
#else
    (void)x87;
    int raised = fetestexcept(FP_ALL);
    if (raised)
        feclearexcept(FP_ALL);
    return raised;
#endif
}

/* Raises flags without trapping. */
static inline void fp_raise(int flags)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | (unsigned)flags);
#else
    feraiseexcept(flags);
#endif
}

#endif
