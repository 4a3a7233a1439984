/* Each tasklet has its own last error, and names of errors. */
#include <errno.h>
#include <string.h>

#include "runtime.h"

static int last_error[EMU_MOST_TASKLETS];

int *__emu_errno(void) { return &last_error[__emu_environment.tasklet]; }

char *strerror(int errnum) {
    switch (errnum) {
    case 0: return "Success";
    case EIO: return "Input/output error";
    case ENOMEM: return "Cannot allocate memory";
    case EINVAL: return "Invalid argument";
    case EDOM: return "Argument out of domain";
    case ERANGE: return "Result out of range";
    case EALREADY: return "Operation already in progress";
    default: return NULL;
    }
}
