/* Runs a fused kernel: generated segments and NumPy's inner loops, one after the other, on contiguous memory.
 *
 * Generated code is only the arithmetic: `void segment(char *const *p, const intptr_t *mask, intptr_t n)` reads and
 * writes contiguous vectors of `lanes` elements, n >= lanes, where the last vector may overlap the one before. Operand
 * k is read at element (i & mask[k]): a mask of 0 repeats one vector, which is how a broadcast operand is read.
 * Everything else is here: operands that are strided or shorter than a vector are packed, and padded by repeating their
 * last element, so that a padding lane raises no flag that the real ones do not.
 *
 * A kernel without calls takes any n and packs through the stack. A kernel with calls takes one block, and what crosses
 * from one step to the next lies in the launcher's scratch. The description comes from native/stages.py as int32 words.
 */
#include "flags.h"
#include "plan.h"

enum { REF_INPUT = 0, REF_SCALAR = 1, REF_OUTPUT = 2, REF_SLOT = 3 };
enum { STEP_SEGMENT = 0, STEP_CALL = 1, STEP_CALL_KEEPING_FLAGS = 2 };
enum { CHUNK = 128, STACK_BYTES = 49152, MAX_SLOTS = 128, MAX_REFS = 256 };

typedef struct { /* the words before the steps */
    int32_t nin, nscalars, nout, nslots;
    int32_t lanes;
    int32_t nsteps;
    int32_t chunked;       /* no calls: one segment whose operands are exactly the kernel's, in order */
    int32_t element_bytes; /* of all array operands together */
    int32_t rest[];        /* itemsizes: inputs, outputs, slots; whether each input is read by a segment; steps */
} Drive;

/* A step: kind, function index, number of operands read, then references (kind << 16 | index) of operands and results.
 */
typedef struct {
    int32_t kind, function, nreads, nrefs;
    int32_t refs[];
} Step;

typedef void (*Segment)(char *const *p, const intptr_t *mask, intptr_t n);

static const intptr_t whole_masks[MAX_OPERANDS] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
};

/* ---- moving elements ------------------------------------------------------------------------------------------- */

#define MOVE(size)                                                                                                     \
    for (intptr_t i = 0; i < n; i++)                                                                                   \
    memcpy(to + i * to_stride, from + i * from_stride, size)

static void move(char *to, intptr_t to_stride, const char *from, intptr_t from_stride, intptr_t n, int size)
{
    switch (size) {
    case 1:
        MOVE(1);
        break;
    case 2:
        MOVE(2);
        break;
    case 4:
        MOVE(4);
        break;
    case 8:
        MOVE(8);
        break;
    default:
        MOVE(16);
    }
}

/* Elements n..upto become copies of element n-1. */
static void pad(char *buffer, intptr_t n, intptr_t upto, int size)
{
    if (n < upto)
        move(buffer + n * size, size, buffer + (n - 1) * size, 0, upto - n, size);
}

/* ---- without calls ----------------------------------------------------------------------------------------------- */

typedef struct {
    const Drive *d;
    char **args;
    const intptr_t *strides;
    char *p[MAX_OPERANDS];
    intptr_t mask[MAX_OPERANDS];
    char *buffer[MAX_OPERANDS];
} Chunks;

static void place_input(Chunks *c, int k, int size, intptr_t done, intptr_t n)
{
    intptr_t stride = c->strides[k];
    char *from = c->args[k] + done * stride;
    c->mask[k] = -1;
    c->p[k] = c->buffer[k];
    if (stride == 0) {
        c->mask[k] = 0;
        if (done == 0)
            move(c->buffer[k], size, from, 0, c->d->lanes, size);
    } else if (stride == size && n >= c->d->lanes) {
        c->p[k] = from;
    } else {
        move(c->buffer[k], size, from, stride, n, size);
        pad(c->buffer[k], n, c->d->lanes, size);
    }
}

static void drive_chunk(Chunks *c, Segment segment, intptr_t done, intptr_t n)
{
    const Drive *d = c->d;
    int first_out = d->nin + d->nscalars;
    const int32_t *sizes = d->rest;
    for (int k = 0; k < d->nin; k++)
        place_input(c, k, sizes[k], done, n);
    for (int k = 0; k < d->nout; k++) {
        int arg = first_out + k, size = sizes[d->nin + k];
        bool direct = c->strides[arg] == size && n >= d->lanes;
        c->p[arg] = direct ? c->args[arg] + done * size : c->buffer[arg];
    }
    segment(c->p, c->mask, n < d->lanes ? d->lanes : n);
    for (int k = 0; k < d->nout; k++) {
        int arg = first_out + k, size = sizes[d->nin + k];
        if (c->p[arg] == c->buffer[arg])
            move(c->args[arg] + done * c->strides[arg], c->strides[arg], c->buffer[arg], size, n, size);
    }
}

static void drive_pieces(const Drive *d, char **args, const intptr_t *strides, intptr_t n, Segment segment,
                         bool broadcast)
{
    _Alignas(64) char stack[STACK_BYTES];
    Chunks c; /* the arrays in it are too long to be cleared for a row of a few elements */
    c.d = d;
    c.args = args;
    c.strides = strides;
    /* Operands that only repeat need no pieces. */
    intptr_t piece = broadcast ? n : CHUNK;
    while (piece != n && piece > 64 && piece * d->element_bytes > STACK_BYTES)
        piece /= 2;
    intptr_t room = broadcast ? 64 : piece;
    char *next = stack;
    int first_out = d->nin + d->nscalars;
    for (int k = 0; k < d->nin; k++, next += room * d->rest[k - 1])
        c.buffer[k] = next;
    for (int k = 0; k < d->nscalars; k++)
        c.p[d->nin + k] = args[d->nin + k];
    for (int k = 0; k < d->nout; k++, next += room * d->rest[d->nin + k - 1])
        c.buffer[first_out + k] = next;
    for (intptr_t done = 0; done < n; done += piece)
        drive_chunk(&c, segment, done, n - done < piece ? n - done : piece);
}

static void drive_chunked(const Drive *d, char **args, const intptr_t *strides, intptr_t n, Segment segment)
{
    bool compact = n >= d->lanes, broadcast = compact;
    const int32_t *sizes = d->rest;
    for (int k = 0; k < d->nin; k++) {
        compact = compact && strides[k] == sizes[k];
        broadcast = broadcast && (strides[k] == sizes[k] || strides[k] == 0);
    }
    const intptr_t *out = strides + d->nin + d->nscalars;
    for (int k = 0; k < d->nout; k++) {
        compact = compact && out[k] == sizes[d->nin + k];
        broadcast = broadcast && out[k] == sizes[d->nin + k];
    }
    if (compact)
        segment(args, whole_masks, n);
    else if (n > 0)
        drive_pieces(d, args, strides, n, segment, broadcast);
}

/* ---- with calls ----------------------------------------------------------------------------------------------------
 */

typedef struct {
    const Drive *d;
    char **args;
    const intptr_t *strides;
    intptr_t n;
    char *input[MAX_OPERANDS]; /* contiguous, for segments */
    intptr_t mask[MAX_OPERANDS];
    char *output[MAX_OPERANDS]; /* the output itself or its buffer */
    char *slot[MAX_SLOTS];
} Block;

static void place_block(Block *b, char *scratch)
{
    const Drive *d = b->d;
    const int32_t *size = d->rest, *packed = d->rest + d->nin + d->nout + d->nslots;
    intptr_t capacity = (b->n + 63) & ~(intptr_t)63; /* as the launcher counts */
    for (int k = 0; k < d->nin; k++) {
        intptr_t stride = b->strides[k];
        b->mask[k] = stride == 0 ? 0 : -1;
        b->input[k] = b->args[k];
        if (!packed[k] || (stride == size[k] && b->n >= d->lanes))
            continue;
        b->input[k] = scratch;
        move(scratch, size[k], b->args[k], stride, stride == 0 ? d->lanes : b->n, size[k]);
        pad(scratch, b->n, stride == 0 ? 0 : d->lanes, size[k]);
        scratch += capacity * size[k];
    }
    size += d->nin;
    for (int k = 0; k < d->nout; k++) {
        int arg = d->nin + d->nscalars + k;
        b->output[k] = b->args[arg];
        if (b->strides[arg] == size[k] && b->n >= d->lanes)
            continue;
        b->output[k] = scratch;
        scratch += capacity * size[k];
    }
    size += d->nout;
    for (int k = 0; k < d->nslots; k++) {
        b->slot[k] = scratch;
        scratch += capacity * size[k];
    }
}

/* Where a reference's elements lie for a segment. */
static char *place(const Block *b, int32_t ref)
{
    int index = ref & 0xFFFF;
    switch (ref >> 16) {
    case REF_INPUT:
        return b->input[index];
    case REF_SCALAR:
        return b->args[b->d->nin + index];
    case REF_OUTPUT:
        return b->output[index];
    default:
        return b->slot[index];
    }
}

static int itemsize(const Drive *d, int32_t ref)
{
    return d->rest[(ref >> 16 == REF_OUTPUT ? d->nin : d->nin + d->nout) + (ref & 0xFFFF)];
}

static void run_segment(const Block *b, const Step *s, Segment segment)
{
    char *p[MAX_REFS];
    intptr_t mask[MAX_REFS];
    for (int k = 0; k < s->nrefs; k++) {
        p[k] = place(b, s->refs[k]);
        mask[k] = s->refs[k] >> 16 == REF_INPUT ? b->mask[s->refs[k] & 0xFFFF] : -1;
    }
    segment(p, mask, b->n < b->d->lanes ? b->d->lanes : b->n);
}

static void run_call(const Block *b, const Step *s, PyUFuncGenericFunction loop, void *data)
{
    char *p[4];
    npy_intp steps[4], n = b->n;
    for (int k = 0; k < s->nrefs; k++) {
        int32_t ref = s->refs[k];
        int kind = ref >> 16, index = ref & 0xFFFF;
        if (kind == REF_INPUT) { /* loops take strides themselves */
            p[k] = b->args[index];
            steps[k] = b->strides[index];
        } else {
            p[k] = place(b, ref);
            steps[k] = kind == REF_SCALAR ? 0 : itemsize(b->d, ref);
        }
    }
    if (s->kind == STEP_CALL_KEEPING_FLAGS) { /* some loops end with all flags cleared */
        int before = fp_take(true);
        loop(p, &n, steps, data);
        if (before)
            fp_raise(before);
    } else {
        loop(p, &n, steps, data);
    }
    int32_t result = s->refs[s->nrefs - 1];
    pad(p[s->nrefs - 1], n, b->d->lanes, itemsize(b->d, result));
}

static void drive_block(const Drive *d, char **args, const intptr_t *strides, intptr_t n, char *scratch, void **fns)
{
    Block b;
    b.d = d;
    b.args = args;
    b.strides = strides;
    b.n = n;
    place_block(&b, scratch);
    const int32_t *at = d->rest + 2 * d->nin + d->nout + d->nslots;
    for (int i = 0; i < d->nsteps; i++) {
        const Step *s = (const Step *)at;
        void **pair = fns + 2 * s->function;
        if (s->kind == STEP_SEGMENT)
            run_segment(&b, s, (Segment)pair[0]);
        else
            run_call(&b, s, (PyUFuncGenericFunction)pair[0], pair[1]);
        at += 4 + s->nrefs;
    }
    for (int k = 0; k < d->nout; k++) {
        int arg = d->nin + d->nscalars + k, size = d->rest[d->nin + k];
        if (b.output[k] != args[arg])
            move(args[arg], strides[arg], b.output[k], size, n, size);
    }
}

/* The kernel function of all fused kernels: fns[0] is the description, then come (function, data) pairs. */
static void drive(char **args, const intptr_t *strides, intptr_t n, char *scratch, void **fns)
{
    const Drive *d = fns[0];
    if (d->chunked)
        drive_chunked(d, args, strides, n, (Segment)fns[2]);
    else if (n > 0)
        drive_block(d, args, strides, n, scratch, fns);
}

int drive_add_to_module(PyObject *module)
{
    PyObject *address = PyLong_FromVoidPtr((void *)(uintptr_t)drive);
    int status = address == NULL ? -1 : PyModule_AddObjectRef(module, "DRIVE", address);
    Py_XDECREF(address);
    return status;
}
