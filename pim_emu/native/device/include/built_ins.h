/* Instructions of the DPU as macros that assign to their first argument: those that C can say.
 *
 * In the products, each operand is one byte: `s` signed, `u` unsigned, `l` bits 0 to 7, `h` bits 8
 * to 15.
 */
#ifndef DPU_BUILT_INS_H
#define DPU_BUILT_INS_H

#define __emu_sl(x) ((signed char)(x))
#define __emu_ul(x) ((unsigned char)(x))
#define __emu_sh(x) ((signed char)((unsigned int)(x) >> 8))
#define __emu_uh(x) ((unsigned char)((unsigned int)(x) >> 8))

#define __builtin_mul_sl_sl_rrr(rc, ra, rb) ((rc) = __emu_sl(ra) * __emu_sl(rb))
#define __builtin_mul_sl_sh_rrr(rc, ra, rb) ((rc) = __emu_sl(ra) * __emu_sh(rb))
#define __builtin_mul_sh_sl_rrr(rc, ra, rb) ((rc) = __emu_sh(ra) * __emu_sl(rb))
#define __builtin_mul_sh_sh_rrr(rc, ra, rb) ((rc) = __emu_sh(ra) * __emu_sh(rb))
#define __builtin_mul_ul_ul_rrr(rc, ra, rb) ((rc) = __emu_ul(ra) * __emu_ul(rb))
#define __builtin_mul_ul_uh_rrr(rc, ra, rb) ((rc) = __emu_ul(ra) * __emu_uh(rb))
#define __builtin_mul_uh_ul_rrr(rc, ra, rb) ((rc) = __emu_uh(ra) * __emu_ul(rb))
#define __builtin_mul_uh_uh_rrr(rc, ra, rb) ((rc) = __emu_uh(ra) * __emu_uh(rb))
#define __builtin_mul_sl_ul_rrr(rc, ra, rb) ((rc) = __emu_sl(ra) * __emu_ul(rb))
#define __builtin_mul_sl_uh_rrr(rc, ra, rb) ((rc) = __emu_sl(ra) * __emu_uh(rb))
#define __builtin_mul_sh_ul_rrr(rc, ra, rb) ((rc) = __emu_sh(ra) * __emu_ul(rb))
#define __builtin_mul_sh_uh_rrr(rc, ra, rb) ((rc) = __emu_sh(ra) * __emu_uh(rb))

/* Each byte of the result: 1 where the bytes are equal, 0 elsewhere. */
static inline unsigned int __emu_cmpb4(unsigned int a, unsigned int b) {
    unsigned int equal = 0;
    for (unsigned int shift = 0; shift < 32; shift += 8)
        equal |= (unsigned int)(__emu_ul(a >> shift) == __emu_ul(b >> shift)) << shift;
    return equal;
}
#define __builtin_cmpb4_rrr(rc, ra, rb) ((rc) = __emu_cmpb4((ra), (rb)))

/* An instruction that does nothing; it is counted. */
#define __builtin_nop_() __asm__ volatile("nop")

static inline unsigned int __emu_clz(unsigned int x) { return x ? __builtin_clz(x) : 32u; }
static inline unsigned int __emu_rol(unsigned int x, unsigned int by) {
    return x << (by & 31u) | x >> (-by & 31u);
}
#define __builtin_clz_rr(rc, ra) ((rc) = __emu_clz(ra))                /* leading zeros */
#define __builtin_clo_rr(rc, ra) ((rc) = __emu_clz(~(unsigned int)(ra))) /* leading ones */
#define __builtin_cls_rr(rc, ra) ((rc) = __builtin_clrsb((int)(ra)) + 1) /* leading sign bits */
#define __builtin_cao_rr(rc, ra) ((rc) = __builtin_popcount(ra))
#define __builtin_rol_rrr(rc, ra, rb) ((rc) = __emu_rol((ra), (rb)))
#define __builtin_ror_rrr(rc, ra, rb) ((rc) = __emu_rol((ra), -(unsigned int)(rb)))
#define __builtin_rol_rri(rc, ra, by) __builtin_rol_rrr(rc, ra, by)
#define __builtin_ror_rri(rc, ra, by) __builtin_ror_rrr(rc, ra, by)
#define __builtin_lsl_add_rrri(rc, ra, rb, by) ((rc) = (ra) + ((rb) << (by)))
#define __builtin_lsl_sub_rrri(rc, ra, rb, by) ((rc) = (ra) - ((rb) << (by)))
#define __builtin_lsr_add_rrri(rc, ra, rb, by) ((rc) = (ra) + ((unsigned int)(rb) >> (by)))

#endif
