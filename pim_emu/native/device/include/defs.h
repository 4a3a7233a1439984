/* The calling tasklet: its number, its end, its stack. */
#ifndef DPU_DEFS_H
#define DPU_DEFS_H

#include <attributes.h>
#include <dpufault.h>
#include <macro_utils.h>
#include <sysdef.h>

#define __ATTRIBUTE_NO_RETURN__ __NO_RETURN

extern unsigned int __emu_tasklet; /* that is running: the engine keeps it */

/* Not an access of the program's own, so not traced. */
__attribute__((no_sanitize("thread"))) static inline sysname_t me(void) { return __emu_tasklet; }

/* Stop the whole DPU with a fault. */
__NO_RETURN void halt(void);

/* 32-bit words of the calling tasklet's stack that are not in use. */
int check_stack(void);

#endif
