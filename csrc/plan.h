/* Inside of the plan: registers, kernels, and what the interpreter calls. */
#ifndef TIERUP_PLAN_H
#define TIERUP_PLAN_H

#include "flags.h"
#include "numpy_api.h"

enum { MAX_NDIM = 16, MAX_OPERANDS = 64 };

enum { OK = 0, MISS = 1 };

/* A scalar register. Bool lives in the first byte, integers in their own width, complex numbers as two parts. */
typedef union {
    int64_t i;
    int32_t i4;
    int16_t i2;
    int8_t i1;
    uint64_t u;
    uint32_t u4;
    uint16_t u2;
    uint8_t u1;
    double d;
    double c[2];
    float f;
    float cf[2];
    uint8_t b;
    _Alignas(16) unsigned char raw[16];
} Slot;

/* An array register: describes memory that `owner` keeps alive. Fields of unset registers but `owner` are undefined. */
typedef struct {
    PyArrayObject *owner; /* strong; NULL for an unset register and for a descriptor over a scalar slot */
    char *data;
    int ndim;
    int type;   /* canonical type number */
    bool whole; /* describes exactly the object `owner` */
    bool writeable;
    bool c_contig; /* as NumPy's flags: axes of length one and empty arrays do not matter */
    bool f_contig;
    npy_intp shape[MAX_NDIM];
    npy_intp strides[MAX_NDIM];
} Array;

/* ---- kernel.c ---------------------------------------------------------------------------------------------- */

typedef void (*KernelFunction)(char **args, const intptr_t *strides, intptr_t n, char *scratch, void **fns);

/* One operation of a fused chain, for the memory order of what NumPy would have allocated (layout.c). */
typedef struct {
    int first, count; /* operands: layout_operands[first .. first+count) */
    int flags;        /* LAYOUT_* */
    uint64_t inputs;  /* array inputs it depends on */
} LayoutOp;

enum {
    LAYOUT_CAST = 1 << 16, /* the operand is cast for the loop, so that NumPy takes its iterator (unless it is 0-d) */
    LAYOUT_ITER = 1 << 17, /* NumPy always takes its iterator here (np.where, several outputs) */
    LAYOUT_COPY = 1 << 18, /* not a ufunc: laid out like copy("K"), astype or empty_like of its one operand */
    LAYOUT_FLAGS = LAYOUT_CAST | LAYOUT_ITER | LAYOUT_COPY
};

/* Which ways through its operands leave a kernel's bits alone. */
enum {
    WALK_ANY = 0,   /* every element is computed alike */
    WALK_NUMPY = 1, /* calls NumPy's loops: along the axis that NumPy would choose */
    WALK_FLAT = 2   /* calls loops that round differently for other strides (power, complex products). NumPy may copy
                       operands into contiguous buffers unless all are walked in one stretch: everything else is a miss */
};

typedef struct {
    PyObject_HEAD KernelFunction function; /* our own kernels */
    PyUFuncGenericFunction loop;           /* NumPy's (numpy_loop) */
    void *loop_data;
    int nin, nscalars, nout, nops;
    int *types; /* canonical, nops of them: inputs, scalars, outputs */
    npy_intp scratch_per_element;
    npy_intp block; /* most elements per call; NPY_MAX_INTP if unlimited */
    double cost;
    void **functions;
    int walk; /* WALK_* */
    bool raises_flags;
    bool x87_flags;
    bool plain_layout; /* no LAYOUT_ flags and no operation without operands */
    bool has_copy;
    int nlayout; /* operations; 0: one operation over all array inputs */
    LayoutOp *layout;
    int *layout_operands;
    int *layout_out; /* nout operations */
    uint64_t all_inputs;
    bool outputs_full; /* every output depends on every array input */
    bool has_identity;
    Slot identity;
    uint64_t calls;
    PyObject *keepalive;
    PyObject *name;
} KernelObject;

/* ---- arrays.c: descriptors ------------------------------------------------------------------------------------ */

void array_describe(Array *a, PyArrayObject *stolen);
int array_load(Array *a, PyObject *ndarray); /* MISS for what the core does not handle */
void array_update_contiguity(Array *a);
npy_intp array_size(const Array *a);
bool arrays_disjoint(const Array *a, const Array *b);
/* New ndarray, owned by the caller; NULL with no exception set when it cannot be made. strides NULL: C order, or
 * Fortran order. */
PyArrayObject *array_alloc(int type, int ndim, const npy_intp *shape, const npy_intp *strides, bool fortran);
PyArrayObject *array_alloc_zeros(int type, int ndim, const npy_intp *shape);
PyObject *array_box(const Array *a);

static inline void array_release(Array *a)
{
    PyArrayObject *owner = a->owner;
    a->owner = NULL;
    Py_XDECREF((PyObject *)owner);
}

/* views: dst may be src. All return OK or MISS */
void view_all(Array *dst, const Array *src); /* a view of all of src */
int view_slice(Array *dst, const Array *src, int axis, int given, const Slot *start, const Slot *stop,
               const Slot *step);
int view_index(Array *dst, const Array *src, int axis, int64_t index);
int view_newaxis(Array *dst, const Array *src, int axis);
int view_transpose(Array *dst, const Array *src, int n, const int32_t *perm);
int view_broadcast(Array *dst, const Array *src, int n, const npy_intp *shape);
int view_reshape(Array *dst, const Array *src, int n, const npy_intp *shape);
int view_part(Array *dst, const Array *src, bool imaginary);
void view_scalar(Array *dst, Slot *slot, int type);

/* ---- layout.c --------------------------------------------------------------------------------------------------- */

typedef struct {
    int ndim;
    npy_intp shape[MAX_NDIM];
    npy_intp strides[MAX_NDIM]; /* in elements */
} Layout;

bool broadcast_shape(Layout *out, const Array *const *in, int n, uint64_t mask);
/* Shape and order of each output as NumPy would allocate it. MISS if shapes do not broadcast or the order is in doubt.
 */
int layout_outputs(const KernelObject *k, const Array *const *in, const Layout *full, Layout *out);
void iter_axes(const Array *a, int *perm);     /* axes as NumPy's iterator walks them, fastest first */
void layout_like(Layout *out, const Array *a); /* order K of copy(), astype(), empty_like() */

/* ---- launch.c --------------------------------------------------------------------------------------------------- */

/* operands: nin arrays, nscalars slots, nout arrays */
int launch(KernelObject *k, Array *const *in, Slot *const *scalars, Array *const *out);
/* For a call on the spot: whether n elements, contiguous, need neither threads, another thread's turn nor more scratch
 * than the stack has. */
bool kernel_is_short(const KernelObject *k, npy_intp n);
void kernel_call_short(const KernelObject *k, char **args, const npy_intp *strides, npy_intp n);
/* Elementwise copy with broadcasting; shapes were checked. Cannot fail. */
void copy_elements(const Array *dst, const Array *src);
void set_launch_limits(double thread_ns, double gil_ns);

/* ---- reduce.c --------------------------------------------------------------------------------------------------- */

int reduce_full(Slot *out, const Array *a, KernelObject *k, bool identity);
int reduce_axis(Array *out, const Array *a, KernelObject *k, int axis, bool identity, bool keepdims);

/* ---- scalars.c -------------------------------------------------------------------------------------------------- */

int slot_from_int(Slot *s, PyObject *o);
int slot_from_float(Slot *s, PyObject *o);
int slot_from_bool(Slot *s, PyObject *o);
int slot_from_complex(Slot *s, PyObject *o);
int slot_from_numpy(Slot *s, PyObject *o, int type);
int slot_cast(Slot *dst, int to, const Slot *src, int from);
PyObject *slot_to_numpy(const Slot *s, int type);
bool int_pow(int64_t base, int64_t exponent, int64_t *result);                  /* false: MISS */
bool double_pow(double base, double exponent, double *result);                  /* false: MISS */
bool int_floordiv(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder); /* false: MISS */

/* ---- plan.c ----------------------------------------------------------------------------------------------------- */

typedef struct Direct Direct;

typedef struct {
    ExitEntry *entries;
    int n;
} PlanEnd;

typedef struct {
    PyObject_HEAD int32_t *code;
    int ncode;
    bool x87; /* some kernel may raise flags through the x87 unit */
    int nobjects, nslots, narrays;
    PyObject *constants; /* tuple */
    PyObject *kernels;   /* tuple */
    PyObject **constant_items;
    KernelObject **kernel_items;
    Slot *image;
    PlanEnd *ends; /* where it may leave off: one, or as many as EXIT operations name */
    int nends;
    Direct *direct;              /* NULL: the plan has not that form */
    uint64_t runs, alarms, left; /* left: runs that were misses, alarms among them */
} PlanObject;

enum {
#define PLAN_OP(name, operands) OP_##name,
#include "plan_ops.def"
#undef PLAN_OP
    OP_END, /* appended to every program */
    NOPS
};
extern const char *const plan_op_names[NOPS];
extern const char *const plan_op_operands[NOPS];

/* Validates a program (validate.c): 0, or -1 with ValueError set. */
int plan_validate(const PlanObject *p);
/* interp.c; values: test entry, replaces the lookup */
int plan_execute(PlanObject *p, Lookup *lookup, PyObject *const *values, Py_ssize_t nvalues, PyObject **regs, int *end);

/* ---- loop_values.c: OK or MISS, or a new object (NULL with an exception set) ------------------------------------ */

int load_array(Slot *first, const Array *a, int ndim);
int load_range(Slot *first, PyObject *iterator);
PyObject *box_range(const Slot *first);
int load_sequence(Array *a, Slot *position, PyObject *iterator);
PyObject *box_sequence_iterator(PyObject *sequence, const Slot *position);
int load_list_iterator(Slot *first, PyObject *iterator);
int load_combined(Slot *index, PyObject *iterator, int count); /* of an enumerate or zip over that many iterators */
PyObject *box_enumerate(PyObject *iterator, const Slot *index);
int load_text(Slot *first, PyObject *text);
PyObject *box_view(const Array *base, const Slot *first, int ndim, bool writeable);

/* ---- direct.c --------------------------------------------------------------------------------------------------- */

int direct_recognise(PlanObject *p); /* 0, or -1 with an exception set */
enum { LATER = -2 };
/* Like plan_execute, or LATER: not for these values, and nothing was done. */
int direct_run(PlanObject *p, Lookup *lookup, PyObject **regs);

#endif
