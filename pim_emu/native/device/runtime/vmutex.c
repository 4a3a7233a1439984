/* Virtual mutexes. Waiting for one is spinning, as on a DPU, so the engine sees no deadlock. */
#include <vmutex.h>

#include "runtime.h"

struct place {
    uint8_t *byte, bit, *mutex;
};

static struct place find(struct vmutex *vm, uint16_t id) {
    return (struct place){&vm->vm[id >> 3], (uint8_t)(1u << (id & 7)),
                          &vm->hw_mutexes[(id >> 3) & vm->hw_mutexes_mask]};
}

void __emu_vmutex_lock(struct vmutex *vm, uint16_t id, const void *pc) {
    const struct place place = find(vm, id);
    for (bool taken = false; !taken;) {
        engine_after(COST_VMUTEX)->mutex_lock(place.mutex, pc);
        taken = (*place.byte & place.bit) == 0;
        *place.byte |= place.bit;
        engine_after(0)->mutex_unlock(place.mutex, pc);
        if (!taken) engine_after(0)->yield(pc);
    }
}

void __emu_vmutex_unlock(struct vmutex *vm, uint16_t id, const void *pc) {
    const struct place place = find(vm, id);
    engine_after(COST_VMUTEX)->mutex_lock(place.mutex, pc);
    if ((*place.byte & place.bit) == 0)
        engine_after(0)->fault(EMU_FAULT_MUTEX, pc, "virtual mutex %u is unlocked, not locked", id);
    *place.byte &= (uint8_t)~place.bit;
    engine_after(0)->mutex_unlock(place.mutex, pc);
}

void vmutex_lock(struct vmutex *vm, uint16_t id) { __emu_vmutex_lock(vm, id, CALLER); }
void vmutex_unlock(struct vmutex *vm, uint16_t id) { __emu_vmutex_unlock(vm, id, CALLER); }
