/* Settings of the emulator by name, for programs that embed it; otherwise the environment decides. */
#include <string.h>

#include "host.h"

void pim_emu_take_complaint(char *text, size_t bytes) {
    emu_take_complaint(text, bytes);
}

/* They hold for launches that begin later. */
dpu_error_t pim_emu_set(const char *name, double value) {
    struct emu_settings *settings = emu_settings();
    if (name == NULL || value < 0 || value > 9007199254740992.0)
        return host_refuse(DPU_ERR_INTERNAL, "pim_emu_set: a name and a number from 0 to 2^53");
    if (strcmp(name, "checks") == 0)
        settings->checks = value != 0;
    else if (strcmp(name, "strict_dma") == 0)
        settings->strict_dma = value != 0;
    else if (strcmp(name, "random") == 0)
        settings->schedule = value != 0 ? EMU_AT_RANDOM : EMU_IN_TIME;
    else if (strcmp(name, "seed") == 0)
        settings->seed = (uint64_t)value;
    else if (strcmp(name, "timeout_seconds") == 0)
        settings->timeout_seconds = value;
    else if (strcmp(name, "quiet") == 0)
        settings->quiet = value != 0;
    else
        return host_refuse(DPU_ERR_UNKNOWN_SYMBOL, "pim_emu_set: there is no setting \"%s\"", name);
    return DPU_OK;
}
