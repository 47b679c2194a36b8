/* Shared by site.c, site_exit.c and live_frame.c. */
#ifndef TIERUP_SITE_H
#define TIERUP_SITE_H

#include "frame_shim.h"

typedef struct {    /* one write of an exit snapshot */
    int kind;       /* EXIT_LOCAL … */
    int slot;       /* localsplus slot, stack position, cell slot */
    int reg;        /* -1: NULL */
    PyObject *name; /* EXIT_NAME: borrowed from the plan's constants */
} SiteWrite;

typedef struct { /* one way in which a specialisation may end */
    SiteWrite *writes;
    int nwrites;
    int nslots;     /* localsplus slots its writes reach */
    int ndeep;      /* stack values beyond the site's depth */
    int exit;       /* -1: this code has no landing for it */
    bool top_null;  /* the landing's top stack slot is NULL */
    bool has_cells; /* cell slots must be looked at before the plan runs */
    bool has_names;
    bool early; /* a loop is left before it is through */
} SiteEnd;

typedef struct { /* one installed specialisation */
    PyObject *plan;
    SiteEnd *ends; /* as many as the plan has */
    int nends;
    int nregs;
    int max_deep;
    bool possible; /* this code has a landing for every end */
    uint64_t hits;
    uint64_t early, through; /* how often an end of either kind was taken */
} SiteSpec;

typedef struct { /* what install() installed; a running lookup holds it too */
    Py_ssize_t refs;
    GuardTree *tree;
    SiteSpec *specs;
    int nspecs;
    int nexprs;
    int max_regs;
    int max_writes;
    int nslots; /* localsplus slots that expressions or writes reach */
} Installed;

typedef struct SitePending { /* what a frame that left the site with a hit has still to fetch with ~site */
    struct SitePending *next;
    void *frame;
    int exit;
    int ndeep; /* -1: nothing but the exit number */
    bool top_null;
    bool spare_size;  /* room for SPARE_DEEP values: worth keeping for the next hit */
    PyObject *deep[]; /* owned; NULL is a value */
} SitePending;

enum { SPARE_DEEP = 4 };

typedef struct Trial Trial;

typedef struct {
    PyObject_HEAD
        /* what a visit looks at first */
        bool armed; /* enabled and bound */
    bool enabled;
    bool translating;
    int instr;
    int64_t countdown;
    Installed *installed;
    PyObject *code; /* weak reference to the code object, NULL: unbound */
    int index;
    int depth;
    int last_exit;
    void *last_frame;
    SitePending *pending;
    SitePending *spare; /* an unused entry: most hits need one for the moment between two instructions */
    PyObject *callback;
    PyObject *last_error;
    uint64_t hits, misses, observed, errors;
    uint64_t trial_at; /* hits from which on a trial runs */
    Trial *trial;      /* NULL: none runs */
    int reach;         /* regions cover the original instructions from index to here, as far as is known */
    bool slow;         /* the last trial said so */
    PyObject *weakrefs;
} Site;

/* site_exit.c */
Installed *installed_new(PyObject *exprs, PyObject *specs, int depth);
void installed_release(Installed *inst);
int installed_traverse(Installed *inst, visitproc visit, void *arg);
/* 0, or -1 with ValueError where a slot does not exist in this code. Also finds out which writes go to slots that may
 * hold cells. */
int installed_fit(Installed *inst, PyCodeObject *code);
/* Looks up and, on a hit, runs the plan and writes the frame. 1: hit, 0: miss, -1: exception. */
int site_lookup(Site *site, PyThreadState *ts, const FrameView *frame);
PyObject *site_fetch_deep(Site *site, PyThreadState *ts);
int site_exit_number(Site *site, PyThreadState *ts); /* -1 with an exception: no hit */
void site_drop_pending(Site *site);

/* trial.c */
bool trial_visit(Site *site, const FrameView *frame); /* of a visit during a trial: whether it is to hit */
bool trial_stands_aside(const Site *site, const FrameView *frame);
void trial_reset(Site *site);

/* live_frame.c */
extern PyTypeObject LiveFrame_Type;
extern PyTypeObject Null_Type;
PyObject *live_frame_new(const FrameView *frame, int depth);
void live_frame_end(PyObject *live);
int live_frame_add_to_module(PyObject *module);

/* code_extra.c */
int code_extra_add_to_module(PyObject *module);

#endif
