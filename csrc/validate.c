/* Validation of plan programs: after it the interpreter trusts every operand. */
#include "plan.h"

const char *const plan_op_names[NOPS] = {
#define PLAN_OP(name, operands) #name,
#include "plan_ops.def"
#undef PLAN_OP
    "END"};

const char *const plan_op_operands[NOPS] = {
#define PLAN_OP(name, operands) operands,
#include "plan_ops.def"
#undef PLAN_OP
    ""};

typedef struct {
    const PlanObject *p;
    const int32_t *pc; /* the instruction; operands from pc[1] */
    int op;
    int nargs;
    bool *object_set, *array_set;
    bool *at_switch; /* what was set before SWITCH: each of its branches begins with that */
    size_t nset;
    bool *begins; /* per word: a branch begins there */
    const int32_t *the_switch;
    bool flags_pending;
    bool storing;
    bool looped;   /* behind LOOP */
    bool branched; /* behind SWITCH */
    bool ended;    /* behind EXIT: a branch begins */
} Validator;

static int fail(const Validator *v, const char *what, int operand)
{
    PyErr_Format(PyExc_ValueError, "plan: %s at word %d, operand %d: %s", plan_op_names[v->op],
                 (int)(v->pc - v->p->code), operand, what);
    return -1;
}

static int in_range(const Validator *v, int operand, int limit, const char *what)
{
    int32_t value = v->pc[1 + operand];
    return value >= 0 && value < limit ? 0 : fail(v, what, operand);
}

/* An operand that is read (written: false) or defined. */
static int check_register(Validator *v, int operand, char kind, bool written)
{
    int32_t r = v->pc[1 + operand];
    if (kind == 's')
        return in_range(v, operand, v->p->nslots, "scalar slot out of range");
    if (in_range(v, operand, kind == 'o' ? v->p->nobjects : v->p->narrays, "register out of range") < 0)
        return -1;
    bool *set = kind == 'o' ? v->object_set : v->array_set;
    if (!written && !set[r])
        return fail(v, "register is not set", operand);
    return 0;
}

static bool writes_first(int op)
{
    switch (op) {
    case OP_C_IS:
    case OP_C_ISNOT:
    case OP_C_NOOVERLAP:
    case OP_C_CCONTIG:
    case OP_A_FREE:
    case OP_STORE:
    case OP_C_STORABLE:
    case OP_RANGE_SET:
    case OP_SEQITER_SET:
    case OP_ENUM_SET:
    case OP_C_ARRAY:
    case OP_SWITCH:
        return false;
    default:
        return true;
    }
}

static int check_type(const Validator *v, int operand)
{
    return type_handled(v->pc[1 + operand]) ? 0 : fail(v, "type number is not handled", operand);
}

/* That many slots from an operand on. */
static int slots_follow(const Validator *v, int operand, int count)
{
    return v->pc[1 + operand] <= v->p->nslots - count ? 0 : fail(v, "slots out of range", operand);
}

/* Plain numbers: types, axes, flags. */
static int check_numbers(const Validator *v)
{
    switch (v->op) {
    case OP_S_NUMPY:
    case OP_BOX_NUMPY:
    case OP_A_SCALAR:
    case OP_A_EMPTY_LIKE:
    case OP_A_ZEROS_LIKE:
        return check_type(v, 2);
    case OP_S_CAST:
        return check_type(v, 1) < 0 ? -1 : check_type(v, 3);
    case OP_A_EMPTY:
    case OP_A_ZEROS:
        return check_type(v, 1);
    case OP_A_FULL:
        return check_type(v, 2);
    case OP_D_CMP:
    case OP_I_CMP:
        return in_range(v, 3, 6, "no such comparison");
    case OP_I_DIM:
    case OP_A_INDEX:
    case OP_A_NEWAXIS:
    case OP_A_SLICE:
        return in_range(v, 2, MAX_NDIM, "axis out of range");
    case OP_A_COPY:
        return in_range(v, 2, 2, "order must be 0 or 1");
    case OP_S_ARRAY:
        if (in_range(v, 2, MAX_NDIM + 1, "rank out of range") < 0)
            return -1;
        return slots_follow(v, 0, 1 + 2 * v->pc[3]);
    case OP_S_RANGE:
        return slots_follow(v, 0, 3);
    case OP_S_LISTITER:
    case OP_S_TEXT:
        return slots_follow(v, 0, 2);
    case OP_C_ARRAY:
        return check_type(v, 1);
    case OP_BOX_VIEW:
        if (in_range(v, 3, MAX_NDIM + 1, "rank out of range") < 0 || in_range(v, 4, 2, "must be 0 or 1") < 0)
            return -1;
        return slots_follow(v, 2, 1 + 2 * v->pc[4]);
    case OP_BOX_RANGE:
    case OP_RANGE_SET:
        return slots_follow(v, 1, 3);
    case OP_EXIT:
        return in_range(v, 0, v->p->nends, "no such exit");
    default:
        return 0;
    }
}

static int check_permutation(const Validator *v)
{
    int n = v->pc[3];
    unsigned seen = 0;
    for (int i = 0; i < n; i++) {
        int axis = v->pc[4 + i];
        if (axis < 0 || axis >= n || seen >> axis & 1)
            return fail(v, "not a permutation", 3 + i);
        seen |= 1u << axis;
    }
    return 0;
}

/* Kinds of the operands behind '*': 'o', 's', 'n', or 'k' for a kernel's own. */
static char rest_kind(int op)
{
    switch (op) {
    case OP_A_TRANSPOSE:
        return 'n';
    case OP_SWITCH:
        return 'w';
    case OP_KERNEL:
        return 'k';
    case OP_BOX_TUPLE:
    case OP_BOX_LIST:
    case OP_BOX_DICT:
        return 'o';
    default:
        return 's';
    }
}

static int check_kernel_rest(Validator *v)
{
    const KernelObject *k = v->p->kernel_items[v->pc[1]];
    int n = v->pc[2];
    if (n != k->nops)
        return fail(v, "the kernel has another number of operands", 1);
    for (int i = 0; i < n; i++) {
        bool scalar = i >= k->nin && i < k->nin + k->nscalars;
        if (check_register(v, 2 + i, scalar ? 's' : 'a', i >= k->nin + k->nscalars) < 0)
            return -1;
    }
    for (int i = k->nin + k->nscalars; i < n; i++) {
        for (int j = k->nin + k->nscalars; j < i; j++)
            if (v->pc[3 + i] == v->pc[3 + j])
                return fail(v, "two outputs in one register", 2 + i);
        v->array_set[v->pc[3 + i]] = true;
    }
    return 0;
}

static int check_rest(Validator *v, int count_operand)
{
    int n = v->pc[1 + count_operand];
    char kind = rest_kind(v->op);
    bool axes = v->op != OP_KERNEL && kind != 'o';
    if (kind == 'w')
        return 0; /* see check_branches */
    if (axes && n > MAX_NDIM)
        return fail(v, "too many axes", count_operand);
    if (v->op == OP_BOX_DICT && n % 2)
        return fail(v, "a key has no value", count_operand);
    if (kind == 'k')
        return check_kernel_rest(v);
    if (kind == 'n')
        return check_permutation(v);
    for (int i = 0; i < n; i++)
        if (check_register(v, count_operand + 1 + i, kind, false) < 0)
            return -1;
    return 0;
}

static int check_reduction(const Validator *v, int kernel_operand, int identity_operand)
{
    const KernelObject *k = v->p->kernel_items[v->pc[1 + kernel_operand]];
    if (k->loop == NULL || k->nin != 2 || k->nout != 1 || k->nscalars != 0 || k->types[0] != k->types[2])
        return fail(v, "not a kernel over NumPy's binary loop", kernel_operand);
    if (v->pc[1 + identity_operand] && !k->has_identity)
        return fail(v, "the kernel has no identity", identity_operand);
    return 0;
}

/* Behind a loop nothing may leave the region any more. */
static bool may_follow_loop(int op)
{
    switch (op) {
    case OP_SWITCH:
    case OP_EXIT:
    case OP_O_CONST:
    case OP_O_EXPR:
    case OP_A_INDEX:
    case OP_BOX_ARRAY:
    case OP_BOX_INT:
    case OP_BOX_FLOAT:
    case OP_BOX_BOOL:
    case OP_BOX_COMPLEX:
    case OP_BOX_NUMPY:
    case OP_BOX_TUPLE:
    case OP_BOX_RANGE:
    case OP_BOX_SEQITER:
    case OP_BOX_VIEW:
    case OP_O_SELECT:
    case OP_BOX_POINTER:
    case OP_BOX_CHAR:
    case OP_RANGE_SET:
    case OP_SEQITER_SET:
    case OP_ENUM_SET:
    case OP_BOX_ENUM:
    case OP_BOX_ZIP:
        return true;
    default:
        return false;
    }
}

/* No flag may be left untested, and nothing but stores may follow the first store: a store cannot be undone. */
static int check_order(Validator *v)
{
    switch (v->op) {
    case OP_KERNEL:
        v->flags_pending = v->flags_pending || v->p->kernel_items[v->pc[1]]->raises_flags;
        break;
    case OP_D_ADD:
    case OP_D_SUB:
    case OP_D_MUL:
    case OP_D_DIV:
    case OP_D_SQRT:
    case OP_REDUCE:
    case OP_REDUCE_AXIS:
        v->flags_pending = true;
        break;
    case OP_FLAGS:
        v->flags_pending = false;
        break;
    default:
        break;
    }
    if (v->looped && !may_follow_loop(v->op))
        return fail(v, "follows a loop", 0);
    if (v->op == OP_EXIT && !v->branched)
        return fail(v, "stands before SWITCH", 0);
    if (v->storing && v->op != OP_STORE && v->op != OP_A_FREE)
        return fail(v, "follows a store", 0);
    if (v->op == OP_STORE) {
        if (v->flags_pending)
            return fail(v, "floating-point flags were not tested", 0);
        v->storing = true;
    }
    return 0;
}

static int define_result(Validator *v)
{
    const char *operands = plan_op_operands[v->op];
    if (v->op == OP_A_FREE)
        v->array_set[v->pc[1]] = false;
    else if (writes_first(v->op) && operands[0] == 'o')
        v->object_set[v->pc[1]] = true;
    else if (writes_first(v->op) && operands[0] == 'a')
        v->array_set[v->pc[1]] = true;
    return 0;
}

/* Number of operand words of the instruction, or -1 with an exception. */
static int instruction_length(Validator *v, int left)
{
    const char *operands = plan_op_operands[v->op];
    int fixed = (int)strlen(operands);
    if (fixed == 0 || operands[fixed - 1] != '*')
        return fixed <= left ? fixed : fail(v, "truncated", fixed);
    fixed--;
    if (fixed > left)
        return fail(v, "truncated", fixed);
    int n = v->pc[fixed]; /* the n before the star */
    return n >= 0 && n <= left - fixed ? fixed + n : fail(v, "truncated", fixed);
}

static int check_operands(Validator *v)
{
    const char *operands = plan_op_operands[v->op];
    for (int i = 0; operands[i]; i++) {
        int status = 0;
        switch (operands[i]) {
        case 'o':
        case 's':
        case 'a':
            status = check_register(v, i, operands[i], i == 0 && writes_first(v->op));
            break;
        case 'k':
            status = in_range(v, i, (int)PyTuple_GET_SIZE(v->p->constants), "no such constant");
            break;
        case 'x':
            status = in_range(v, i, (int)PyTuple_GET_SIZE(v->p->kernels), "no such kernel");
            break;
        case 'e':
            status = in_range(v, i, INT32_MAX, "negative expression");
            break;
        case '*':
            status = check_rest(v, i - 1);
            break;
        default:
            break;
        }
        if (status < 0)
            return -1;
    }
    return 0;
}

static int check_instruction(Validator *v)
{
    if (check_operands(v) < 0 || check_numbers(v) < 0 || check_order(v) < 0)
        return -1;
    if (v->op == OP_REDUCE && check_reduction(v, 2, 3) < 0)
        return -1;
    if (v->op == OP_REDUCE_AXIS && (check_reduction(v, 2, 4) < 0 || in_range(v, 3, MAX_NDIM, "axis out of range") < 0))
        return -1;
    if (v->op == OP_REDUCE &&
        (check_type(v, 4) < 0 || element_types[v->pc[5]].canonical != v->p->kernel_items[v->pc[3]]->types[2]))
        return fail(v, "the loop has another result type", 4);
    return define_result(v);
}

static int check_end(const Validator *v, int number)
{
    const PlanEnd *end = &v->p->ends[number];
    for (int i = 0; i < end->n; i++) {
        const ExitEntry *e = &end->entries[i];
        bool constant = e->kind == EXIT_NAME;
        if (e->kind < EXIT_LOCAL || e->kind > EXIT_NAME || e->slot < 0 ||
            (constant && e->slot >= PyTuple_GET_SIZE(v->p->constants)) || e->reg < -1 || e->reg >= v->p->nobjects) {
            PyErr_Format(PyExc_ValueError, "plan: exit entry %d is out of range", i);
            return -1;
        }
        if (e->reg >= 0 && !v->object_set[e->reg]) {
            PyErr_Format(PyExc_ValueError, "plan: exit entry %d uses object register %d, which is not set", i,
                         (int)e->reg);
            return -1;
        }
    }
    return 0;
}

/* Words that SWITCH names must begin its branches: the word behind it, and those behind EXIT. */
static int check_branches(Validator *v)
{
    v->pc = v->the_switch;
    v->op = OP_SWITCH;
    for (int i = 0; i < v->pc[2]; i++) {
        int32_t word = v->pc[3 + i];
        if (word < 0 || word >= v->p->ncode || !v->begins[word])
            return fail(v, "no branch begins there", 2 + i);
    }
    return 0;
}

/* Control flow: LOOP, then SWITCH, then branches that end with EXIT. */
static int follow(Validator *v)
{
    size_t bytes = v->nset * sizeof(bool);
    switch (v->op) {
    case OP_LOOP:
        v->looped = true;
        return 0;
    case OP_SWITCH:
        if (!v->looped || v->branched)
            return fail(v, "must follow a loop, once", 0);
        v->branched = true;
        v->the_switch = v->pc;
        v->begins[v->pc + 1 + v->nargs - v->p->code] = true;
        memcpy(v->at_switch, v->object_set, bytes);
        return 0;
    case OP_EXIT:
        if (check_end(v, v->pc[1]) < 0)
            return -1;
        memcpy(v->object_set, v->at_switch, bytes);
        v->begins[v->pc + 1 + v->nargs - v->p->code] = true;
        v->ended = true;
        return 0;
    default:
        v->ended = false;
        return 0;
    }
}

/* At the end of the program. */
static int check_last(Validator *v)
{
    if (v->branched && !v->ended) {
        PyErr_SetString(PyExc_ValueError, "plan: the last branch does not end with EXIT");
        return -1;
    }
    if (v->branched && check_branches(v) < 0)
        return -1;
    if (v->looped != v->branched || (!v->branched && v->p->nends != 1)) {
        PyErr_SetString(PyExc_ValueError, "plan: several exits need a loop and a SWITCH");
        return -1;
    }
    if (v->flags_pending) {
        PyErr_SetString(PyExc_ValueError, "plan: floating-point flags are not tested at the end");
        return -1;
    }
    return v->branched ? 0 : check_end(v, 0);
}

int plan_validate(const PlanObject *p)
{
    Validator v = {.p = p, .pc = p->code};
    v.nset = (size_t)p->nobjects + (size_t)p->narrays;
    bool *set = PyMem_Calloc(2 * v.nset + (size_t)p->ncode + 1, sizeof(bool));
    if (set == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    v.object_set = set;
    v.array_set = set + p->nobjects;
    v.at_switch = set + v.nset;
    v.begins = set + 2 * v.nset;
    const int32_t *end = p->code + p->ncode;
    int status = 0;
    while (status == 0 && v.pc < end) {
        if (*v.pc < 0 || *v.pc >= OP_END) {
            PyErr_Format(PyExc_ValueError, "plan: no instruction %d at word %d", (int)*v.pc, (int)(v.pc - p->code));
            status = -1;
            break;
        }
        v.op = *v.pc;
        v.nargs = instruction_length(&v, (int)(end - v.pc) - 1);
        status = v.nargs < 0 || check_instruction(&v) < 0 ? -1 : follow(&v);
        v.pc += 1 + v.nargs;
    }
    if (status == 0)
        status = check_last(&v);
    PyMem_Free(set);
    return status;
}
