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

/* An immediate operand: a number, or its text as the vendor's compiler wants it ("12", "0x1f", "-1").
 * It is not a loop, so that it is a constant after optimisation. */
static inline unsigned int __emu_digit(char c) {
    return (unsigned int)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}
#define __EMU_NEXT_DIGIT                                                                           \
    if (*text) value = value * base + __emu_digit(*text++);
static inline __attribute__((always_inline)) unsigned int __emu_number_of_text(const char *text) {
    const int negative = *text == '-';
    text += negative;
    const int hexadecimal = text[0] == '0' && (text[1] | 32) == 'x';
    const unsigned int base = hexadecimal ? 16 : 10;
    unsigned int value = 0;
    if (hexadecimal) text += 2;
    __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT
    __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT __EMU_NEXT_DIGIT
    return negative ? -value : value;
}
static inline unsigned int __emu_number(unsigned int number) { return number; }
#define __emu_immediate(x)                                                                         \
    _Generic((x), char *: __emu_number_of_text, const char *: __emu_number_of_text,                \
             default: __emu_number)(x)

static inline unsigned int __emu_clz(unsigned int x) { return x ? __builtin_clz(x) : 32u; }
static inline unsigned int __emu_rol(unsigned int x, unsigned int by) {
    return x << (by & 31u) | x >> (-by & 31u);
}
static inline unsigned int __emu_asr(int x, unsigned int by) {
    return (unsigned int)(x >> (by & 31u)); /* gcc's shift of a negative number keeps its sign */
}
#define __emu_word(x) ((unsigned int)(x))
#define __builtin_clz_rr(rc, ra) ((rc) = __emu_clz(ra))                /* leading zeros */
#define __builtin_clo_rr(rc, ra) ((rc) = __emu_clz(~(unsigned int)(ra))) /* leading ones */
#define __builtin_cls_rr(rc, ra) ((rc) = __builtin_clrsb((int)(ra)) + 1) /* leading sign bits */
#define __builtin_cao_rr(rc, ra) ((rc) = __builtin_popcount(ra))
#define __builtin_extsb_rr(rc, ra) ((rc) = (signed char)(ra)) /* the low byte or half, extended */
#define __builtin_extub_rr(rc, ra) ((rc) = (unsigned char)(ra))
#define __builtin_extsh_rr(rc, ra) ((rc) = (short)(ra))
#define __builtin_extuh_rr(rc, ra) ((rc) = (unsigned short)(ra))
#define __builtin_add_rrr(rc, ra, rb) ((rc) = __emu_word(ra) + __emu_word(rb))
#define __builtin_sub_rrr(rc, ra, rb) ((rc) = __emu_word(ra) - __emu_word(rb))
#define __builtin_and_rrr(rc, ra, rb) ((rc) = __emu_word(ra) & __emu_word(rb))
#define __builtin_or_rrr(rc, ra, rb) ((rc) = __emu_word(ra) | __emu_word(rb))
#define __builtin_xor_rrr(rc, ra, rb) ((rc) = __emu_word(ra) ^ __emu_word(rb))
/* Of a shift, the low five bits count. */
#define __builtin_lsl_rrr(rc, ra, rb) ((rc) = __emu_word(ra) << (__emu_word(rb) & 31u))
#define __builtin_lsr_rrr(rc, ra, rb) ((rc) = __emu_word(ra) >> (__emu_word(rb) & 31u))
#define __builtin_asr_rrr(rc, ra, rb) ((rc) = __emu_asr((int)(ra), (rb)))
#define __builtin_rol_rrr(rc, ra, rb) ((rc) = __emu_rol((ra), (rb)))
#define __builtin_ror_rrr(rc, ra, rb) ((rc) = __emu_rol((ra), -(unsigned int)(rb)))
#define __builtin_add_rri(rc, ra, by) __builtin_add_rrr(rc, ra, __emu_immediate(by))
#define __builtin_sub_rri(rc, ra, by) __builtin_sub_rrr(rc, ra, __emu_immediate(by))
#define __builtin_and_rri(rc, ra, by) __builtin_and_rrr(rc, ra, __emu_immediate(by))
#define __builtin_or_rri(rc, ra, by) __builtin_or_rrr(rc, ra, __emu_immediate(by))
#define __builtin_xor_rri(rc, ra, by) __builtin_xor_rrr(rc, ra, __emu_immediate(by))
#define __builtin_lsl_rri(rc, ra, by) __builtin_lsl_rrr(rc, ra, __emu_immediate(by))
#define __builtin_lsr_rri(rc, ra, by) __builtin_lsr_rrr(rc, ra, __emu_immediate(by))
#define __builtin_asr_rri(rc, ra, by) __builtin_asr_rrr(rc, ra, __emu_immediate(by))
#define __builtin_rol_rri(rc, ra, by) __builtin_rol_rrr(rc, ra, __emu_immediate(by))
#define __builtin_ror_rri(rc, ra, by) __builtin_ror_rrr(rc, ra, __emu_immediate(by))
#define __builtin_lsl_add_rrri(rc, ra, rb, by) ((rc) = (ra) + ((rb) << __emu_immediate(by)))
#define __builtin_lsl_sub_rrri(rc, ra, rb, by) ((rc) = (ra) - ((rb) << __emu_immediate(by)))
#define __builtin_lsr_add_rrri(rc, ra, rb, by)                                                     \
    ((rc) = (ra) + ((unsigned int)(rb) >> __emu_immediate(by)))

/* Refused: their results are not known well enough, or need the carry flag. */
void __emu_no_built_in(void)
    __attribute__((error("this built-in of built_ins.h is not emulated; say it in C")));
#define __builtin_hash_rrr(...) __emu_no_built_in()
#define __builtin_hash_rri(...) __emu_no_built_in()
#define __builtin_addc_rrr(...) __emu_no_built_in()
#define __builtin_addc_rri(...) __emu_no_built_in()
#define __builtin_subc_rrr(...) __emu_no_built_in()
#define __builtin_subc_rri(...) __emu_no_built_in()

#endif
