/* Ends: of a tasklet, of the DPU. */
#include <assert.h>
#include <defs.h>
#include <stdlib.h>

#include "runtime.h"

void exit(int status) {
    (void)status; /* nobody can see it */
    engine_after(COST_CALL)->halt();
}

void halt(void) { engine_after(0)->fault(EMU_FAULT_PROGRAM, CALLER, "halt() was called"); }

void abort(void) { engine_after(0)->fault(EMU_FAULT_PROGRAM, CALLER, "abort() was called"); }

void __emu_assertion_failed(const char *expression) {
    engine_after(0)->fault(EMU_FAULT_PROGRAM, CALLER, "assertion failed: %s", expression);
}
