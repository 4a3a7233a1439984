/* Reads the performance counter around work of known length. */
#include <barrier.h>
#include <built_ins.h>
#include <defs.h>
#include <perfcounter.h>
#include <stdint.h>

BARRIER_INIT(everybody, NR_TASKLETS);
__host uint64_t cycles[3], instructions[3], nothing, kept, clocks;
__host uint32_t words[2], built_ins[40];
static volatile uint32_t sink;
#ifdef __dpu_v1B__
__host perfcounter_pair_t both, both_again;
#endif

static void work(uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; ++i) sink = i;
}

static void measure(uint64_t *into, perfcounter_config_t what) {
    perfcounter_config(what, true);
    into[0] = perfcounter_get();
    work(1000);
    into[1] = perfcounter_get();
    work(4000);
    into[2] = perfcounter_get();
}

int main(void) {
    if (me() == 0) {
        measure(cycles, COUNT_CYCLES);
        measure(instructions, COUNT_INSTRUCTIONS);
        perfcounter_config(COUNT_NOTHING, false);
        work(1000);
        nothing = perfcounter_get() - instructions[2];
        kept = perfcounter_config(COUNT_SAME, false) - perfcounter_get();
        clocks = CLOCKS_PER_SEC;
#ifdef __dpu_v1B__
        perfcounter_config(COUNT_ENABLE_BOTH, true);
        work(4000);
        both = perfcounter_get_both(true);
        both_again = perfcounter_get_both(false);
#endif
        const uint32_t x = words[0], y = words[1];
        uint32_t *r = built_ins;
        __builtin_mul_sl_sl_rrr(*r++, x, y);
        __builtin_mul_sh_sl_rrr(*r++, x, y);
        __builtin_mul_ul_uh_rrr(*r++, x, y);
        __builtin_mul_sh_uh_rrr(*r++, x, y);
        __builtin_cmpb4_rrr(*r++, x, y);
        __builtin_clz_rr(*r++, x);
        __builtin_clo_rr(*r++, x);
        __builtin_cls_rr(*r++, x);
        __builtin_cao_rr(*r++, x);
        __builtin_rol_rrr(*r++, x, y);
        __builtin_ror_rrr(*r++, x, y);
        __builtin_lsl_add_rrri(*r++, x, y, 3);
        __builtin_lsl_add_rrri(*r++, x, y, "3");
        __builtin_extsb_rr(*r++, y >> 4);
        __builtin_extub_rr(*r++, x >> 16);
        __builtin_extsh_rr(*r++, x >> 16);
        __builtin_extuh_rr(*r++, x >> 16);
        __builtin_add_rrr(*r++, x, y);
        __builtin_sub_rrr(*r++, y, x);
        __builtin_and_rrr(*r++, x, y);
        __builtin_or_rrr(*r++, x, y);
        __builtin_xor_rrr(*r++, x, y);
        __builtin_lsl_rrr(*r++, x, y);
        __builtin_lsr_rrr(*r++, x, y);
        __builtin_asr_rrr(*r++, x, y);
        __builtin_add_rri(*r++, x, "0x12");
        __builtin_sub_rri(*r++, x, "-7");
        __builtin_and_rri(*r++, x, "0xFF00fF00");
        __builtin_or_rri(*r++, x, "4294967280");
        __builtin_xor_rri(*r++, x, 5);
        __builtin_lsl_rri(*r++, x, "33");
        __builtin_lsr_rri(*r++, x, "1");
        __builtin_asr_rri(*r++, x, "12");
        __builtin_rol_rri(*r++, x, "8");
        __builtin_ror_rri(*r++, x, "0xc");
    }
    return 0;
}
