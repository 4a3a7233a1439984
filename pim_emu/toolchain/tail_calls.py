"""Replacement of tail calls to the run-time library by calls that return.

If a function's last statement is a call, gcc makes it a jump. The library then returns to the
caller's caller, and a fault in it would name a line there. The function's frame is gone at the
jump, so a call in its place only needs to keep the stack aligned. A call would misplace arguments
on the stack. Only `printf` can have such arguments; its jump is replaced only where the code before
it puts nothing on the stack.
"""

import re

_NAMES = """
    barrier_wait handshake_notify handshake_wait_for mutex_lock mutex_trylock mutex_unlock
    mutex_pool_lock mutex_pool_unlock sem_give sem_take vmutex_lock vmutex_unlock
    mem_alloc mem_reset buddy_alloc buddy_free buddy_init buddy_realloc buddy_reset
    fsb_alloc fsb_free fsb_get check_stack
    mram_read mram_read_unaligned mram_write mram_write_unaligned
    seqread32_alloc seqread32_get seqread32_init seqread32_seek seqread32_tell
    seqread64_alloc seqread64_get seqread64_init seqread64_seek seqread64_tell
    seqread128_alloc seqread128_get seqread128_init seqread128_seek seqread128_tell
    seqread256_alloc seqread256_get seqread256_init seqread256_seek seqread256_tell
    seqread512_alloc seqread512_get seqread512_init seqread512_seek seqread512_tell
    seqread1024_alloc seqread1024_get seqread1024_init seqread1024_seek seqread1024_tell
    input_fifo_peek input_fifo_pop is_input_fifo_empty is_output_fifo_full output_fifo_push
    perfcounter_config perfcounter_get profiling_start profiling_stop
    memchr memcmp memcpy memmove memset stpcpy stpncpy strcat strchr strcmp strcpy strcspn strerror
    strlen strlwr strncat strncmp strncpy strnlen strpbrk strrchr strrev strsep strspn strstr
    strtok_r strtol strupr putchar puts atoi atol abs labs llabs div ldiv
    isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper
    isxdigit toascii tolower toupper
    __emu_atomic_bit_acquire __emu_atomic_bit_release __emu_mram_word_fetch __emu_mram_word_store
    __emu_perfcounter_config_v1B __emu_perfcounter_get_both __emu_errno
    __emu_memcpy_any __emu_memmove_any __emu_memset_any __emu_memcmp_any
"""
LIBRARY = frozenset(_NAMES.split())
_VARIADIC = "printf"
_ON_STACK = re.compile(r"-?\d*\(%rsp")
_LABEL = re.compile(r"^[A-Za-z_]\w*:", re.MULTILINE)
_JUMP = re.compile(r"^\tjmp\t(\w+)$", re.MULTILINE)


def return_from_library(assembly: str) -> str:
    """Replace jumps to library functions by calls, unless the file defines the function itself."""

    def uses_stack(end: int) -> bool:
        start = max((label.end() for label in _LABEL.finditer(assembly, 0, end)), default=0)
        return _ON_STACK.search(assembly, start, end) is not None

    def replacement(jump: re.Match[str]) -> str:
        name = jump[1]
        known = name in LIBRARY or (name == _VARIADIC and not uses_stack(jump.start()))
        if not known or f"\n{name}:" in assembly:
            return jump[0]
        return f"\tsubq\t$8, %rsp\n\tcall\t{name}\n\taddq\t$8, %rsp\n\tret"

    return _JUMP.sub(replacement, assembly)
