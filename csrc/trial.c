/* Trials: whether a site is faster than the instructions it stands for, measured where it runs.
 *
 * From time to time a site leaves some of its visits to the interpreter, though it could hit, and takes the time from
 * each visit to the next in the same frame: a turn of the loop, or of the caller's loop. Four such periods in the order
 * hit, miss, miss, hit (then the other way round) make a block; what grows or shrinks steadily with the turns cancels
 * out in it. A site is slow if nearly all blocks say so: a sign test, with a margin. One that is far faster is not kept
 * waiting: two blocks that say so are enough. */
#include "site.h"

#include <time.h>

static const double CLEARLY_FASTER = -0.25; /* loss */
enum { PERIODS = 4, BLOCKS = 12, PATIENCE = 256, AGAIN_IF_CLEAR = 64, AGAIN_IF_NOT = 4 };

struct Trial {
    void *frame;
    uint64_t last; /* when the visit before was; 0: there is none that counts */
    uint64_t hits; /* of the site, before that visit */
    bool hitting;  /* that visit was to hit */
    int period;    /* within the block */
    int visits;
    double hit, miss; /* nanoseconds in this block */
    int blocks, slower;
    double loss[BLOCKS]; /* share of the time that hitting costs, per block */
};

/* Sites in the stretch that was left to the interpreter stand aside, too, until the site in question is met again. */
static struct {
    void *frame;
    PyObject *code;
    int low, high;
} aside;

static uint64_t first_trial; /* hits; 0: no trials */

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void start_block(Trial *t)
{
    t->period = 0;
    t->hit = t->miss = 0;
}

static bool turn_hits(const Trial *t)
{
    bool outer = t->period == 0 || t->period == PERIODS - 1;
    return outer == (t->blocks % 2 == 0);
}

/* Enters the period that ends now. */
static void close_period(Trial *t, const Site *site, void *frame, uint64_t time)
{
    bool counts = t->last != 0 && t->frame == frame && (!t->hitting || site->hits > t->hits);
    if (!counts) {
        start_block(t);
        return;
    }
    *(t->hitting ? &t->hit : &t->miss) += (double)(time - t->last);
    if (++t->period < PERIODS)
        return;
    t->loss[t->blocks] = (t->hit - t->miss) / (t->miss > 0 ? t->miss : 1);
    t->slower += t->loss[t->blocks] > 0;
    t->blocks++;
    start_block(t);
}

static double median_loss(const Trial *t)
{
    double sorted[BLOCKS];
    for (int i = 0; i < t->blocks; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > t->loss[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = t->loss[i];
    }
    return (sorted[t->blocks / 2] + sorted[(t->blocks - 1) / 2]) / 2;
}

typedef enum { UNDECIDED, FAST, SLOW } Verdict;

static Verdict verdict(const Trial *t)
{
    int n = t->blocks;
    if (n == 2 && t->period == 0 && t->loss[0] < CLEARLY_FASTER && t->loss[1] < CLEARLY_FASTER)
        return FAST;
    if (n == 0 || t->period != 0 || n % 4 != 0)
        return t->visits > PATIENCE ? FAST : UNDECIDED;
    if (t->slower >= n - n / 6 && median_loss(t) > (n == 4 ? 0.03 : 0.015))
        return SLOW;
    return n == BLOCKS || t->slower == 0 || t->visits > PATIENCE ? FAST : UNDECIDED;
}

/* Where the blocks do not agree, the next trial comes sooner. */
static void end_trial(Site *site, bool slow)
{
    uint64_t factor = site->trial->slower == 0 ? AGAIN_IF_CLEAR : AGAIN_IF_NOT;
    PyMem_Free(site->trial);
    site->trial = NULL;
    site->slow = slow;
    site->trial_at = slow || site->hits > UINT64_MAX / factor ? UINT64_MAX : site->hits * factor;
}

bool trial_visit(Site *site, const FrameView *frame)
{
    uint64_t time = now();
    if (aside.frame == frame->raw)
        aside.frame = NULL;
    if (site->trial == NULL && (site->trial = PyMem_Calloc(1, sizeof(Trial))) == NULL) {
        site->trial_at = UINT64_MAX;
        return true;
    }
    Trial *t = site->trial;
    close_period(t, site, frame->raw, time);
    t->visits++;
    Verdict found = verdict(t);
    if (found != UNDECIDED) {
        end_trial(site, found == SLOW);
        return true;
    }
    t->frame = frame->raw;
    t->hits = site->hits;
    t->hitting = turn_hits(t);
    if (!t->hitting) {
        aside.frame = frame->raw;
        aside.code = site->code;
        aside.low = site->index;
        aside.high = site->reach;
    }
    t->last = now();
    return t->hitting;
}

bool trial_stands_aside(const Site *site, const FrameView *frame)
{
    return aside.frame == frame->raw && aside.code == site->code && site->index > aside.low && site->index < aside.high;
}

void trial_reset(Site *site)
{
    PyMem_Free(site->trial);
    site->trial = NULL;
    site->slow = false;
    site->trial_at = first_trial == 0 ? UINT64_MAX : site->hits + first_trial;
}

static PyObject *set_first_trial(PyObject *module, PyObject *arg)
{
    unsigned long hits = PyLong_AsUnsignedLong(arg);
    if (hits == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    first_trial = hits;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_first_trial", set_first_trial, METH_O,
     PyDoc_STR("set_first_trial(hits)\n\nHits after which what is installed from now on is first tried against the "
               "interpreter; 0: never.")},
    {NULL, NULL, 0, NULL},
};

int trial_add_to_module(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
