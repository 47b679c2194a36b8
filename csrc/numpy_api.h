/* NumPy's C API, bound lazily: nothing here may be called before init_numpy() (numpy_ready() says whether it was).
 * numpy_api.c defines the API table; everybody else sees it through this header. */
#ifndef TIERUP_NUMPY_API_H
#define TIERUP_NUMPY_API_H

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tierup_array_api
#define PY_UFUNC_UNIQUE_SYMBOL tierup_ufunc_api
#ifndef TIERUP_NUMPY_MAIN
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include "tierup.h"
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <numpy/ufuncobject.h>

/* What we need to know of each element type, by type number. Types the core does not handle have size 0. */
enum { NTYPES = NPY_CDOUBLE + 1 };
typedef struct {
    int size;      /* bytes; 0: not handled */
    int canonical; /* type number with the same representation that kernels use (LONGLONG becomes LONG) */
    char kind;     /* 'b' bool, 'i' signed, 'u' unsigned, 'f' float, 'c' complex */
    PyArray_Descr *descr;
    PyTypeObject *scalar;
} ElementType;
extern ElementType element_types[NTYPES];

static inline bool type_handled(int type)
{
    return type >= 0 && type < NTYPES && element_types[type].size != 0;
}

/* The element types are needed before NumPy is there (plan validation): fills size, canonical and kind. */
void element_types_init(void);

/* Flags (FP_*) that the current np.errstate ignores. Runs no Python code. */
int errstate_ignored(void);

#endif
