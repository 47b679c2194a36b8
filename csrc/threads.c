/* A small pool of POSIX threads for parts of a kernel launch.
 *
 * One job at a time: a caller that finds the pool busy runs its parts itself. Workers are made when first needed, sleep
 * between jobs, block all signals (Python's belong to the main thread) and never touch the interpreter. A forked child
 * forgets them and starts anew. */
#define _GNU_SOURCE
#include "tierup.h"
#include "flags.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 256 };

typedef struct {
    void (*work)(void *ctx, int part);
    void *ctx;
    int nparts;
    int next;  /* part to be taken (atomic) */
    int flags; /* floating-point flags raised by workers (atomic) */
    fenv_t env;
} Task;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    Task *task;          /* the current job, if any */
    uint64_t generation; /* counts jobs */
    int seats;           /* workers that may still join the job */
    int active;          /* workers inside the job */
    int workers;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

static pthread_mutex_t owner_lock = PTHREAD_MUTEX_INITIALIZER; /* held by the caller whose job runs */
static int wanted_threads;                                     /* 0: not decided yet */

static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.idle, NULL);
    pthread_mutex_init(&owner_lock, NULL);
    pool.task = NULL;
    pool.seats = pool.active = pool.workers = 0;
}

static int count_threads(void)
{
    const char *text = getenv("TIERUP_NUM_THREADS");
    if (text != NULL && *text) {
        char *end;
        long n = strtol(text, &end, 10);
        if (*end == 0 && n >= 1)
            return n < MAX_THREADS ? (int)n : MAX_THREADS;
    }
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set) < MAX_THREADS ? CPU_COUNT(&set) : MAX_THREADS;
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n < MAX_THREADS ? (int)n : MAX_THREADS;
}

int pool_threads(void)
{
    int n = __atomic_load_n(&wanted_threads, __ATOMIC_RELAXED);
    if (n == 0) {
        n = count_threads();
        __atomic_store_n(&wanted_threads, n, __ATOMIC_RELAXED);
    }
    return n;
}

void pool_set_threads(int n)
{
    __atomic_store_n(&wanted_threads, n < MAX_THREADS ? n : MAX_THREADS, __ATOMIC_RELAXED);
}

static void take_parts(Task *task)
{
    for (;;) {
        int part = __atomic_fetch_add(&task->next, 1, __ATOMIC_RELAXED);
        if (part >= task->nparts)
            return;
        task->work(task->ctx, part);
    }
}

static void *worker_main(void *unused)
{
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.task == NULL || pool.seats == 0 || pool.generation == seen)
            pthread_cond_wait(&pool.wake, &pool.lock);
        Task *task = pool.task;
        seen = pool.generation;
        pool.seats--;
        pool.active++;
        pthread_mutex_unlock(&pool.lock);

        fesetenv(&task->env);
        fp_take(true);
        take_parts(task);
        __atomic_fetch_or(&task->flags, fp_take(true), __ATOMIC_RELAXED);

        pthread_mutex_lock(&pool.lock);
        if (--pool.active == 0)
            pthread_cond_signal(&pool.idle);
    }
    return NULL;
}

/* Makes the pool n workers large, or as large as the system allows. Called with pool.lock held. */
static void grow(int n)
{
    static int registered;
    if (!registered)
        registered = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
    if (pool.workers >= n || !registered)
        return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.workers < n) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker_main, NULL) != 0)
            break;
        pthread_detach(thread);
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void pool_run(void (*work)(void *ctx, int part), void *ctx, int nparts)
{
    Task task = {.work = work, .ctx = ctx, .nparts = nparts};
    int helpers = (pool_threads() < nparts ? pool_threads() : nparts) - 1;
    if (helpers < 1 || pthread_mutex_trylock(&owner_lock) != 0) {
        take_parts(&task);
        return;
    }
    fegetenv(&task.env);
    pthread_mutex_lock(&pool.lock);
    grow(helpers);
    pool.task = &task;
    pool.generation++;
    pool.seats = helpers;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);

    take_parts(&task);

    pthread_mutex_lock(&pool.lock);
    pool.task = NULL; /* nobody joins any more */
    pool.seats = 0;
    while (pool.active > 0)
        pthread_cond_wait(&pool.idle, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&owner_lock);
    int flags = __atomic_load_n(&task.flags, __ATOMIC_RELAXED);
    if (flags)
        fp_raise(flags);
}
