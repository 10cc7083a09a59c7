/* Handles of each kind, and each use that one may be put to. */
#ifndef HANDLES_H
#define HANDLES_H

#include "check.h"

enum kind { CONFIG, CLIENT, LIMITER, TICKET, PERMIT, QUEUE, ERROR, KINDS };

/* One handle of each kind, all alive. */
struct handles {
    void *of[KINDS];
};

struct handles make_handles(void);
void free_handle(enum kind kind, void *handle);
/* In an order that is the shuffle's. */
void free_handles(struct handles *handles);

/* A function's parameter that takes a handle of the kind. */
struct use {
    const char *name;
    enum kind kind;
    /* Calls it with that handle, and with what else it needs from `others`. */
    fq_status (*call)(void *handle, const struct handles *others);
};

extern const struct use uses[];
extern const size_t uses_count;

/* What a use comes to with a handle that is none of its kind. */
void check_use(const struct use *use, void *handle, const struct handles *others, fq_status want);

#endif
