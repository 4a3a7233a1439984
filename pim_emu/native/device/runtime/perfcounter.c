/* The performance counter: a 32-bit register in steps of 16 of what it counts. */
#define __dpu_v1B__ /* has all there is */
#include <perfcounter.h>

#include "runtime.h"

#define STEP_LOG2 4

/* The engine writes the clock of the machine when it loads the program. */
const volatile uint32_t CLOCKS_PER_SEC = 350000000;

/* The counter's value is what it held when it was last configured, and what passed since. */
struct counter {
    uint64_t held, since;
    bool on;
};
static OUTSIDE_WRAM struct counter cycles, instructions;
static OUTSIDE_WRAM bool shows_instructions; /* and not cycles */

void __emu_perfcounter_boot(void) {
    cycles = instructions = (struct counter){0, 0, false};
    shows_instructions = false;
}

static uint64_t now_of(const struct counter *counter) {
    const struct emu_services *const engine = engine_after(0);
    return counter == &cycles ? engine->cycles() : engine->launch_instructions();
}

/* Other tasklets may run, and configure the counter, while the engine says what time it is. */
static uint64_t value_of(const struct counter *counter) {
    const uint64_t now = now_of(counter);
    return counter->held + (counter->on && now > counter->since ? now - counter->since : 0);
}

static void set(struct counter *counter, uint64_t value, bool on) {
    *counter = (struct counter){value, now_of(counter), on};
}

static perfcounter_t shown(uint64_t value) {
    return (perfcounter_t)(uint32_t)(value >> STEP_LOG2) << STEP_LOG2;
}

static struct counter *visible(void) { return shows_instructions ? &instructions : &cycles; }

perfcounter_t perfcounter_get(void) {
    emu_count += COST_PERFCOUNTER;
    return shown(value_of(visible()));
}

static void configure_both(bool on, bool reset_value) {
    set(&cycles, reset_value ? 0 : value_of(&cycles), on);
    set(&instructions, reset_value ? 0 : value_of(&instructions), on);
}

/* The single counter goes on from its value, whatever it counts next. */
static void configure_one(perfcounter_config_t config, bool reset_value) {
    struct counter *const old = visible();
    const uint64_t value = reset_value ? 0 : value_of(old);
    bool on = old->on;
    if (config != COUNT_SAME) {
        shows_instructions = config == COUNT_INSTRUCTIONS;
        on = config != COUNT_NOTHING;
    }
    old->on = false;
    set(visible(), value, on);
}

perfcounter_t perfcounter_config(perfcounter_config_t config, bool reset_value) {
    emu_count += COST_PERFCOUNTER;
    if (config == COUNT_ENABLE_BOTH || config == COUNT_DISABLE_BOTH)
        configure_both(config == COUNT_ENABLE_BOTH, reset_value);
    else
        configure_one(config, reset_value);
    return shown(visible()->held); /* time has passed since */
}

perfcounter_pair_t perfcounter_get_both(bool should_reset) {
    emu_count += COST_PERFCOUNTER;
    const perfcounter_pair_t pair = {shown(value_of(&cycles)), shown(value_of(&instructions))};
    if (should_reset) configure_both(true, true);
    return pair;
}

/* Programs for version v1A come here: they have one counter. */
#undef perfcounter_config
perfcounter_t perfcounter_config(perfcounter_config_t config, bool reset_value) {
    if (config == COUNT_ENABLE_BOTH || config == COUNT_DISABLE_BOTH)
        engine_after(0)->fault(EMU_FAULT_LIBRARY, CALLER,
                               "perfcounter_config(%s): only DPUs of version v1B count both",
                               config == COUNT_ENABLE_BOTH ? "COUNT_ENABLE_BOTH"
                                                           : "COUNT_DISABLE_BOTH");
    return __emu_perfcounter_config_v1B(config, reset_value);
}
