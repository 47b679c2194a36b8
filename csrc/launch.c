/* Running a kernel: broadcast, allocate the outputs, merge axes, cut into blocks, spread over threads. */
#include "plan.h"

/* A nest of loops over operands; strides are grouped by axis because the kernel takes those of one axis. */
typedef struct {
    const KernelObject *kernel;
    int nops;
    int ndim; /* at least 1; the last axis is the kernel's */
    npy_intp shape[MAX_NDIM];
    npy_intp strides[MAX_NDIM][MAX_OPERANDS];
    char *args[MAX_OPERANDS];
    npy_intp rows;   /* product of the outer axes */
    npy_intp chunk;  /* the innermost axis is cut into pieces of this length */
    npy_intp chunks; /* per row */
    int parts;
    int failed;
} Job;

enum { STACK_SCRATCH = 8192, CACHE_LINE = 64 };

/* Estimated nanoseconds of work from which on a launch leaves the GIL, and uses the pool. */
static double gil_threshold = 50e3, thread_threshold = 100e3;

void set_launch_limits(double thread_ns, double gil_ns)
{
    thread_threshold = thread_ns;
    gil_threshold = gil_ns;
}

/* ---- calling ---------------------------------------------------------------------------------------------------- */

static void call_blocks(const KernelObject *k, char **args, const npy_intp *strides, int nops, npy_intp n,
                        char *scratch)
{
    char *at[MAX_OPERANDS];
    memcpy(at, args, (size_t)nops * sizeof(char *));
    for (npy_intp done = 0; done < n;) {
        npy_intp length = n - done < k->block ? n - done : k->block;
        if (k->loop != NULL)
            k->loop(at, &length, strides, k->loop_data);
        else
            k->function(at, strides, length, scratch, k->functions);
        done += length;
        for (int i = 0; i < nops; i++)
            at[i] += length * strides[i];
    }
}

/* One stretch of elements. NumPy's loops read their dimension and stride arrays only. */
static inline void call_stretch(const KernelObject *k, char **args, const npy_intp *strides, int nops, npy_intp n,
                                char *scratch)
{
    if (n > k->block) {
        call_blocks(k, args, strides, nops, n, scratch);
    } else if (k->loop != NULL) {
        k->loop(args, &n, strides, k->loop_data);
    } else {
        k->function(args, strides, n, scratch, k->functions);
    }
}

static npy_intp scratch_bytes(const KernelObject *k, npy_intp n)
{
    npy_intp length = n < k->block ? n : k->block;
    return k->scratch_per_element * ((length + 63) & ~(npy_intp)63);
}

static char *aligned(char *p)
{
    return (char *)(((uintptr_t)p + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
}

/* Units first..last of the nest: a unit is one chunk of one row. */
static void run_units(const Job *job, npy_intp first, npy_intp last, char *scratch)
{
    int inner = job->ndim - 1;
    npy_intp index[MAX_NDIM], n = job->shape[inner];
    char *row[MAX_OPERANDS], *at[MAX_OPERANDS];
    memcpy(row, job->args, (size_t)job->nops * sizeof(char *));
    npy_intp rest = first / job->chunks, chunk = first % job->chunks;
    for (int axis = inner - 1; axis >= 0; axis--) {
        index[axis] = rest % job->shape[axis];
        rest /= job->shape[axis];
        for (int i = 0; i < job->nops; i++)
            row[i] += index[axis] * job->strides[axis][i];
    }
    for (npy_intp unit = first; unit < last; unit++) {
        npy_intp start = chunk * job->chunk;
        npy_intp length = n - start < job->chunk ? n - start : job->chunk;
        for (int i = 0; i < job->nops; i++)
            at[i] = row[i] + start * job->strides[inner][i];
        call_stretch(job->kernel, at, job->strides[inner], job->nops, length, scratch);
        if (++chunk < job->chunks)
            continue;
        chunk = 0;
        for (int axis = inner - 1; axis >= 0; axis--) {
            bool wraps = ++index[axis] == job->shape[axis];
            npy_intp steps = wraps ? 1 - job->shape[axis] : 1;
            for (int i = 0; i < job->nops; i++)
                row[i] += steps * job->strides[axis][i];
            if (!wraps)
                break;
            index[axis] = 0;
        }
    }
}

bool kernel_is_short(const KernelObject *k, npy_intp n)
{
    return (double)n * k->cost < gil_threshold && scratch_bytes(k, n) <= STACK_SCRATCH;
}

void kernel_call_short(const KernelObject *k, char **args, const npy_intp *strides, npy_intp n)
{
    char scratch[STACK_SCRATCH + CACHE_LINE];
    call_stretch(k, args, strides, k->nops, n, aligned(scratch));
}

/* A part allocates its own scratch, so that it lies in the memory of the thread that uses it. */
static void run_part(void *context, int part)
{
    Job *job = context;
    npy_intp units = job->rows * job->chunks;
    npy_intp first = (npy_intp)((__int128)units * part / job->parts);
    npy_intp last = (npy_intp)((__int128)units * (part + 1) / job->parts);
    npy_intp bytes = scratch_bytes(job->kernel, job->chunk);
    char local[STACK_SCRATCH + CACHE_LINE];
    char *allocated = NULL, *scratch = aligned(local);
    if (bytes > STACK_SCRATCH) {
        allocated = malloc((size_t)bytes + CACHE_LINE);
        if (allocated == NULL) {
            __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        scratch = aligned(allocated);
    }
    run_units(job, first, last, scratch);
    free(allocated);
}

/* ---- planning the nest ----------------------------------------------------------------------------------------------
 */

/* Sorts axes by the strides of operand `lead`, slowest first. Axes it does not move along stay where they are relative
 * to those before. */
static void sort_axes(Job *job, int lead)
{
    for (int i = 1; i < job->ndim; i++) {
        for (int j = i; j > 0; j--) {
            npy_intp a = job->strides[j - 1][lead], b = job->strides[j][lead];
            if ((a < 0 ? -a : a) >= (b < 0 ? -b : b))
                break;
            npy_intp line[MAX_OPERANDS], length = job->shape[j];
            size_t bytes = (size_t)job->nops * sizeof(npy_intp);
            memcpy(line, job->strides[j], bytes);
            memcpy(job->strides[j], job->strides[j - 1], bytes);
            memcpy(job->strides[j - 1], line, bytes);
            job->shape[j] = job->shape[j - 1];
            job->shape[j - 1] = length;
        }
    }
}

static bool mergeable(const Job *job, int outer, int inner)
{
    for (int i = 0; i < job->nops; i++)
        if (job->strides[outer][i] != job->shape[inner] * job->strides[inner][i])
            return false;
    return true;
}

/* Merges neighbours that all operands walk through as one. Axes of length one are gone already. */
static void merge_axes(Job *job)
{
    if (job->ndim == 0) {
        job->ndim = 1;
        job->shape[0] = 1;
        memset(job->strides[0], 0, (size_t)job->nops * sizeof(npy_intp));
        return;
    }
    int last = 0; /* axes 0..last are done */
    for (int i = 1; i < job->ndim; i++) {
        if (mergeable(job, last, i)) {
            job->shape[i] *= job->shape[last];
        } else {
            last++;
        }
        if (last != i) {
            job->shape[last] = job->shape[i];
            memcpy(job->strides[last], job->strides[i], (size_t)job->nops * sizeof(npy_intp));
        }
    }
    job->ndim = last + 1;
}

/* A short innermost axis costs a call per few elements; kernels that compute every element alike may walk along the
 * longest axis instead. NumPy's loops may not: some choose their algorithm by the stride of an operand (power with a
 * constant exponent). */
static void lengthen_inner(Job *job)
{
    int inner = job->ndim - 1, longest = inner;
    if (job->kernel->walk != WALK_ANY || job->shape[inner] >= 16)
        return;
    for (int i = 0; i < inner; i++)
        if (job->shape[i] > job->shape[longest])
            longest = i;
    if (job->shape[longest] < 8 * job->shape[inner])
        return;
    for (int i = 0; i < job->nops; i++) {
        npy_intp stride = job->strides[inner][i];
        job->strides[inner][i] = job->strides[longest][i];
        job->strides[longest][i] = stride;
    }
    npy_intp length = job->shape[inner];
    job->shape[inner] = job->shape[longest];
    job->shape[longest] = length;
}

static int run_job(Job *job, bool threads)
{
    int inner = job->ndim - 1;
    npy_intp n = job->shape[inner];
    job->rows = 1;
    for (int i = 0; i < inner; i++)
        job->rows *= job->shape[i];
    job->chunk = n;
    job->chunks = 1;
    job->parts = 1;
    job->failed = 0;
    double work = (double)job->rows * (double)n * job->kernel->cost;
    int nthreads = threads && work >= thread_threshold ? pool_threads() : 1;
    if (nthreads > 1) {
        /* several parts per thread, because threads may be held up; none so small that waking somebody for it costs
         * more */
        double worthwhile = work / thread_threshold * 4;
        npy_intp wanted = worthwhile < nthreads * 4.0 ? (npy_intp)worthwhile : (npy_intp)nthreads * 4;
        if (job->rows < wanted) { /* pieces are whole cache lines of every element size */
            npy_intp pieces = (wanted + job->rows - 1) / job->rows;
            job->chunk = ((n + pieces - 1) / pieces + 63) & ~(npy_intp)63;
            job->chunks = (n + job->chunk - 1) / job->chunk;
        }
        npy_intp units = job->rows * job->chunks;
        job->parts = (int)(units < wanted ? units : wanted);
    }
    if (work < gil_threshold) {
        run_part(job, 0);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        if (job->parts > 1)
            pool_run(run_part, job, job->parts);
        else
            run_part(job, 0);
        Py_END_ALLOW_THREADS;
    }
    return job->failed ? MISS : OK;
}

/* Adds an operand whose shape broadcasts to the job's full shape. */
static void add_operand(Job *job, int position, const Array *a, const Layout *full)
{
    job->args[position] = a->data;
    int lead = full->ndim - a->ndim, out = 0;
    for (int axis = 0; axis < full->ndim; axis++) {
        if (full->shape[axis] == 1)
            continue;
        int own = axis - lead;
        job->strides[out++][position] = own < 0 || a->shape[own] == 1 ? 0 : a->strides[own];
    }
}

static void begin_job(Job *job, const KernelObject *k, int nops, const Layout *full)
{
    job->kernel = k;
    job->nops = nops;
    job->ndim = 0;
    for (int axis = 0; axis < full->ndim; axis++)
        if (full->shape[axis] != 1)
            job->shape[job->ndim++] = full->shape[axis];
}

/* ---- launching
 * ---------------------------------------------------------------------------------------------------------- */

/* All inputs have one shape and are contiguous in one order (or 0-d): no need to look at axes at all. */
typedef struct {
    const Array *shape_of;
    npy_intp n;
    bool fortran;
} Flat;

/* More than one operation: what comes between is contiguous here, even where NumPy would have it broadcast. */
static bool is_chain(const KernelObject *k)
{
    return k->nlayout > 1 || !k->plain_layout;
}

static bool is_flat(const KernelObject *k, Array *const *in, npy_intp *strides, Flat *flat)
{
    const Array *first = NULL;
    bool c = true, f = true, zero_rank = false;
    for (int i = 0; i < k->nin; i++) {
        const Array *a = in[i];
        if (a->ndim == 0) {
            strides[i] = 0;
            zero_rank = true;
            continue;
        }
        if (first == NULL)
            first = a;
        else if (a->ndim != first->ndim || memcmp(a->shape, first->shape, (size_t)a->ndim * sizeof(npy_intp)) != 0)
            return false;
        strides[i] = a->ndim == 1 ? a->strides[0] : element_types[a->type].size;
        c = c && (a->ndim == 1 || a->c_contig);
        f = f && a->ndim != 1 && a->f_contig;
        if (!c && !f)
            return false;
    }
    if (first == NULL)
        first = in[0];
    else if (zero_rank && (!k->outputs_full || (k->walk == WALK_FLAT && is_chain(k))))
        return false;
    if (!c) { /* see layout.c: strides of length-one axes, operations that do not follow their operands' order */
        if (!k->plain_layout || (k->nlayout == 0 && k->nout > 1))
            return false;
        for (int i = 0; i < first->ndim; i++)
            if (first->shape[i] == 1)
                return false;
    }
    flat->shape_of = first;
    flat->n = array_size(first);
    flat->fortran = !c;
    return true;
}

static void drop_all(PyArrayObject **made, int n)
{
    for (int i = 0; i < n; i++)
        Py_DECREF((PyObject *)made[i]);
}

static int launch_flat(const KernelObject *k, Slot *const *scalars, Array *const *in, const Flat *flat,
                       npy_intp *strides, PyArrayObject **made)
{
    int nargs = k->nin + k->nscalars;
    char *args[MAX_OPERANDS];
    for (int i = 0; i < k->nin; i++)
        args[i] = in[i]->data;
    for (int i = 0; i < k->nscalars; i++) {
        args[k->nin + i] = (char *)scalars[i];
        strides[k->nin + i] = 0;
    }
    for (int i = 0; i < k->nout; i++) {
        int type = k->types[nargs + i];
        made[i] = array_alloc(type, flat->shape_of->ndim, flat->shape_of->shape, NULL, flat->fortran);
        if (made[i] == NULL) {
            drop_all(made, i);
            return MISS;
        }
        args[nargs + i] = PyArray_BYTES(made[i]);
        strides[nargs + i] = element_types[type].size;
    }
    if (flat->n == 0)
        return OK;
    if (kernel_is_short(k, flat->n)) {
        kernel_call_short(k, args, strides, flat->n);
        return OK;
    }
    Job job = {.kernel = k, .nops = k->nops, .ndim = 1, .shape = {flat->n}};
    memcpy(job.args, args, (size_t)k->nops * sizeof(char *));
    memcpy(job.strides[0], strides, (size_t)k->nops * sizeof(npy_intp));
    int status = run_job(&job, true);
    if (status != OK)
        drop_all(made, k->nout);
    return status;
}

static int allocate_outputs(const KernelObject *k, const Layout *layouts, PyArrayObject **made)
{
    for (int i = 0; i < k->nout; i++) {
        const Layout *l = &layouts[i];
        int type = k->types[k->nin + k->nscalars + i];
        npy_intp strides[MAX_NDIM];
        for (int axis = 0; axis < l->ndim; axis++)
            strides[axis] = l->strides[axis] * element_types[type].size;
        made[i] = array_alloc(type, l->ndim, l->shape, strides, false);
        if (made[i] == NULL) {
            drop_all(made, i);
            return MISS;
        }
    }
    return OK;
}

/* For WALK_FLAT. */
static bool is_one_stretch(const Job *job, Array *const *in)
{
    if (job->ndim > 1)
        return false;
    if (!is_chain(job->kernel))
        return true; /* for one element all strides are zero, as in NumPy's iterator */
    for (int i = 0; i < job->kernel->nin; i++)
        if (array_size(in[i]) != job->shape[0])
            return false;
    return job->shape[0] != 1;
}

static int launch_nest(const KernelObject *k, Slot *const *scalars, Array *const *in, PyArrayObject **made)
{
    Layout full, layouts[MAX_OPERANDS];
    if (!broadcast_shape(&full, (const Array *const *)in, k->nin, k->all_inputs) ||
        layout_outputs(k, (const Array *const *)in, &full, layouts) != OK || allocate_outputs(k, layouts, made) != OK)
        return MISS;
    Job job;
    int nargs = k->nin + k->nscalars, lead = nargs;
    begin_job(&job, k, k->nops, &full);
    for (int i = 0; i < job.ndim; i++)
        if (job.shape[i] == 0)
            return OK;
    for (int i = 0; i < k->nin; i++)
        add_operand(&job, i, in[i], &full);
    for (int i = 0; i < k->nscalars; i++) {
        job.args[k->nin + i] = (char *)scalars[i];
        for (int axis = 0; axis < job.ndim; axis++)
            job.strides[axis][k->nin + i] = 0;
    }
    bool all_full = true;
    for (int i = 0; i < k->nout; i++) {
        Array described;
        array_describe(&described, made[i]);
        add_operand(&job, nargs + i, &described, &full);
        bool is_full = described.ndim == full.ndim &&
                       memcmp(described.shape, full.shape, (size_t)full.ndim * sizeof(npy_intp)) == 0;
        all_full = all_full && is_full;
        if (is_full)
            lead = nargs + i;
    }
    sort_axes(&job, lead);
    merge_axes(&job);
    if (k->walk == WALK_FLAT && !is_one_stretch(&job, in)) {
        drop_all(made, k->nout);
        return MISS;
    }
    lengthen_inner(&job);
    /* An output that is smaller than the whole nest is written many times: not from several threads at once. */
    int status = run_job(&job, all_full);
    if (status != OK)
        drop_all(made, k->nout);
    return status;
}

int launch(KernelObject *k, Array *const *in, Slot *const *scalars, Array *const *out)
{
    PyArrayObject *made[MAX_OPERANDS];
    npy_intp strides[MAX_OPERANDS];
    Flat flat;
    for (int i = 0; i < k->nin; i++)
        if (in[i]->type != k->types[i])
            return MISS;
    int status = is_flat(k, in, strides, &flat) ? launch_flat(k, scalars, in, &flat, strides, made)
                                                : launch_nest(k, scalars, in, made);
    if (status != OK)
        return MISS;
    k->calls++;
    for (int i = 0; i < k->nout; i++) { /* only now: an output register may be an input register */
        array_release(out[i]);
        array_describe(out[i], made[i]);
    }
    return OK;
}

/* ---- copying
 * ------------------------------------------------------------------------------------------------------------ */

#define COPY_LOOP(name, type)                                                                                          \
    static void name(char **args, const intptr_t *strides, intptr_t n, char *scratch, void **fns)                      \
    {                                                                                                                  \
        const char *from = args[0];                                                                                    \
        char *to = args[1];                                                                                            \
        intptr_t s = strides[0], d = strides[1];                                                                       \
        if (s == (intptr_t)sizeof(type) && d == s) {                                                                   \
            memcpy(to, from, (size_t)n * sizeof(type));                                                                \
        } else if (d == (intptr_t)sizeof(type)) {                                                                      \
            for (intptr_t i = 0; i < n; i++)                                                                           \
                memcpy(to + i * (intptr_t)sizeof(type), from + i * s, sizeof(type));                                   \
        } else {                                                                                                       \
            for (intptr_t i = 0; i < n; i++)                                                                           \
                memcpy(to + i * d, from + i * s, sizeof(type));                                                        \
        }                                                                                                              \
    }

COPY_LOOP(copy_1, uint8_t)
COPY_LOOP(copy_2, uint16_t)
COPY_LOOP(copy_4, uint32_t)
COPY_LOOP(copy_8, uint64_t)
COPY_LOOP(copy_16, Slot)

static const KernelFunction copy_loops[] = {copy_1, copy_2, copy_4, copy_8, copy_16};

void copy_elements(const Array *dst, const Array *src)
{
    int size = element_types[dst->type].size, loop = 0;
    while (1 << loop < size)
        loop++;
    KernelObject k = {
        .function = copy_loops[loop], .nin = 1, .nout = 1, .nops = 2, .block = NPY_MAX_INTP, .cost = 0.1 * size};
    Layout full = {.ndim = dst->ndim};
    memcpy(full.shape, dst->shape, (size_t)dst->ndim * sizeof(npy_intp));
    Job job;
    begin_job(&job, &k, 2, &full);
    for (int i = 0; i < job.ndim; i++)
        if (job.shape[i] == 0)
            return;
    add_operand(&job, 0, src, &full);
    add_operand(&job, 1, dst, &full);
    sort_axes(&job, 1);
    merge_axes(&job);
    lengthen_inner(&job);
    (void)run_job(&job, true); /* without scratch it cannot fail */
}
