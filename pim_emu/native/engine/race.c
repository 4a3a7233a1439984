/* Races in traced programs: two accesses to the same byte, one of them a write, by tasklets of which
 * neither has waited for the other. Each tasklet has a clock that it advances when it releases
 * something; a vector of clocks says what it knows of the others (as in FastTrack, Flanagan and
 * Freund, PLDI 2009, but each tasklet's last read of each byte of WRAM is kept). The race is found in
 * whatever order the tasklets happen to run. Of MRAM, only the last reader of a word is kept: a write
 * that races with one before it is found in other orders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_MRAM_WORDS (1u << 22) /* remembered of MRAM; beyond it, races there go unseen */
#define WORD 8u                    /* bytes of MRAM that are told apart */

typedef uint32_t clocks[EMU_MOST_TASKLETS];

struct written {
    uint32_t clock; /* 0: never */
    uint8_t by;
    const void *pc;
};

struct wram_byte {
    struct written write;
    clocks reads;
    uint32_t read_pcs[EMU_MOST_TASKLETS]; /* code lies below 4 GiB */
};

struct mram_word {
    uint32_t word; /* plus one; 0: empty */
    uint32_t read_clock;
    uint8_t read_by;
    struct written write;
    const void *read_pc;
};

/* A barrier, mutex, ..., or a volatile variable. */
struct sync_object {
    const void *object; /* NULL: empty */
    clocks known;
};

struct emu_races {
    uint32_t wram_bytes;
    clocks known[EMU_MOST_TASKLETS];
    struct sync_object *objects;
    uint32_t object_capacity, object_count; /* the capacity is a power of two */
    struct wram_byte *wram;
    struct mram_word *mram;
    uint32_t mram_capacity, mram_count; /* the capacity is a power of two */
};

struct emu_races *emu_make_races(struct emu_races *old, const struct emu_machine *machine) {
    if (old != NULL && old->wram_bytes >= machine->wram_bytes) return old;
    emu_free_races(old);
    struct emu_races *races = calloc(1, sizeof *races);
    if (races == NULL) return NULL;
    races->wram_bytes = machine->wram_bytes;
    races->wram = calloc(machine->wram_bytes, sizeof *races->wram);
    races->mram_capacity = 1024;
    races->mram = calloc(races->mram_capacity, sizeof *races->mram);
    races->object_capacity = 1024;
    races->objects = calloc(races->object_capacity, sizeof *races->objects);
    if (races->wram != NULL && races->mram != NULL && races->objects != NULL) return races;
    emu_free_races(races);
    return NULL;
}

void emu_free_races(struct emu_races *races) {
    if (races == NULL) return;
    free(races->wram);
    free(races->mram);
    free(races->objects);
    free(races);
}

void emu_begin_races(struct emu_run *run) {
    struct emu_races *races = run->races;
    memset(races->known, 0, sizeof races->known);
    memset(races->objects, 0, races->object_capacity * sizeof *races->objects);
    races->object_count = 0;
    memset(races->wram, 0, races->wram_bytes * sizeof *races->wram);
    memset(races->mram, 0, races->mram_capacity * sizeof *races->mram);
    races->mram_count = 0;
    for (uint32_t i = 0; i < run->count; ++i) races->known[i][i] = 1;
}

static struct sync_object *find_object(struct emu_races *races, const void *object) {
    const uint32_t mask = races->object_capacity - 1;
    uint32_t slot = (uint32_t)((uintptr_t)object * 2654435761u) & mask;
    while (races->objects[slot].object != NULL && races->objects[slot].object != object)
        slot = (slot + 1) & mask;
    return &races->objects[slot];
}

static bool grow_objects(struct emu_races *races) {
    struct sync_object *old = races->objects;
    const uint32_t capacity = races->object_capacity;
    struct sync_object *grown = calloc(2 * (size_t)capacity, sizeof *grown);
    if (grown == NULL) return false;
    races->objects = grown;
    races->object_capacity = 2 * capacity;
    for (uint32_t i = 0; i < capacity; ++i)
        if (old[i].object != NULL) *find_object(races, old[i].object) = old[i];
    free(old);
    return true;
}

/* What is known of an object. What were forgotten would be taken for a race: without memory, the DPU
 * stops. */
static uint32_t *known_of(struct emu_run *run, const void *object) {
    struct emu_races *races = run->races;
    struct sync_object *found = find_object(races, object);
    if (found->object == NULL) {
        if (races->object_count >= races->object_capacity / 2) {
            if (!grow_objects(races))
                emu_fail(run, EMU_FAULT_LIBRARY, run->tasklets[run->current].pc,
                         "no memory of the host for %u objects on which tasklets meet",
                         races->object_count);
            found = find_object(races, object);
        }
        found->object = object;
        ++races->object_count;
    }
    return found->known;
}

static void join(uint32_t *into, const uint32_t *from) {
    for (uint32_t i = 0; i < EMU_MOST_TASKLETS; ++i)
        if (from[i] > into[i]) into[i] = from[i];
}

void emu_race_release(struct emu_run *run, const void *object, uint32_t tasklet) {
    if (run->races == NULL) return;
    join(known_of(run, object), run->races->known[tasklet]);
    ++run->races->known[tasklet][tasklet];
}

void emu_race_acquire(struct emu_run *run, const void *object, uint32_t tasklet) {
    if (run->races == NULL) return;
    join(run->races->known[tasklet], known_of(run, object));
}

static const char *verb(enum emu_access access) {
    return access == EMU_READ ? "reads" : "writes";
}

static _Noreturn void fail(struct emu_run *run, const char *what, enum emu_access access,
                           const void *pc, uint32_t other, bool wrote, const void *other_pc) {
    emu_fail(run, EMU_FAULT_RACE, pc,
             "%s %s, which tasklet %u %s at %s, and neither waits for the other", verb(access),
             what, other, wrote ? "wrote" : "read", emu_place(run, other_pc));
}

static void check_byte(struct emu_run *run, struct wram_byte *byte, const void *address,
                       enum emu_access access, const void *pc) {
    const uint32_t self = run->current;
    const uint32_t *known = run->races->known[self];
    char name[64];
    if (byte->write.clock > known[byte->write.by])
        fail(run, emu_name_object(run, address, name), access, pc, byte->write.by, true,
             byte->write.pc);
    if (access == EMU_READ) {
        byte->reads[self] = known[self];
        byte->read_pcs[self] = (uint32_t)(uintptr_t)pc;
        return;
    }
    for (uint32_t i = 0; i < run->count; ++i)
        if (byte->reads[i] > known[i])
            fail(run, emu_name_object(run, address, name), access, pc, i, false,
                 (const void *)(uintptr_t)byte->read_pcs[i]);
    byte->write = (struct written){known[self], (uint8_t)self, pc};
}

/* Stacks stand for WRAM too, but nobody else's variables lie there. */
void emu_race_wram(struct emu_run *run, const void *address, size_t bytes, enum emu_access access,
                   const void *pc) {
    const uint8_t *wram = run->image->wram, *at = address;
    if (at < wram || at >= wram + run->races->wram_bytes) return;
    if (access == EMU_ATOMIC) { /* orders what comes before and after it */
        emu_race_acquire(run, address, run->current);
        emu_race_release(run, address, run->current);
        return;
    }
    for (size_t i = 0; i < bytes; ++i)
        check_byte(run, &run->races->wram[at - wram + (ptrdiff_t)i], at + i, access, pc);
}

static struct mram_word *find_word(struct emu_races *races, uint32_t word) {
    const uint32_t mask = races->mram_capacity - 1;
    uint32_t slot = word * 2654435761u & mask;
    while (races->mram[slot].word != 0 && races->mram[slot].word != word + 1)
        slot = (slot + 1) & mask;
    return &races->mram[slot];
}

static void grow(struct emu_races *races) {
    struct mram_word *old = races->mram;
    const uint32_t capacity = races->mram_capacity;
    struct mram_word *grown = calloc(2 * (size_t)capacity, sizeof *grown);
    if (grown == NULL) return;
    races->mram = grown;
    races->mram_capacity = 2 * capacity;
    for (uint32_t i = 0; i < capacity; ++i)
        if (old[i].word != 0) *find_word(races, old[i].word - 1) = old[i];
    free(old);
}

/* The word's memory, made if there is room; NULL: it is not remembered. */
static struct mram_word *remember_word(struct emu_races *races, uint32_t word) {
    struct mram_word *found = find_word(races, word);
    if (found->word != 0) return found;
    if (races->mram_count >= MOST_MRAM_WORDS) return NULL;
    if (races->mram_count >= races->mram_capacity / 2) {
        grow(races);
        if (races->mram_count >= races->mram_capacity / 2) return NULL;
        found = find_word(races, word);
    }
    found->word = word + 1;
    ++races->mram_count;
    return found;
}

/* "'name'" of a word's variable and where it lies: neighbours in one word look like a race too. */
static _Noreturn void fail_mram(struct emu_run *run, uint32_t word, enum emu_access access,
                                const void *pc, uint32_t other, bool wrote, const void *other_pc) {
    char what[128];
    const uint32_t address = EMU_MRAM_BASE + word * WORD;
    const char *name = emu_symbol_at(run->program, address);
    snprintf(what, sizeof what, "%s%.64s%sMRAM word 0x%08x to 0x%08x%s", name ? "'" : "",
             name ? name : "", name ? "' (" : "", address, address + WORD - 1, name ? ")" : "");
    fail(run, what, access, pc, other, wrote, other_pc);
}

void emu_race_mram(struct emu_run *run, uint32_t offset, size_t bytes, enum emu_access access,
                   const void *pc) {
    const uint32_t self = run->current;
    const uint32_t *known = run->races->known[self];
    for (uint32_t word = offset / WORD; word <= (offset + bytes - 1) / WORD; ++word) {
        struct mram_word *seen = remember_word(run->races, word);
        if (seen == NULL) continue;
        if (seen->write.clock > known[seen->write.by])
            fail_mram(run, word, access, pc, seen->write.by, true, seen->write.pc);
        if (access == EMU_READ) { /* only the last reader is remembered */
            seen->read_clock = known[self];
            seen->read_by = (uint8_t)self;
            seen->read_pc = pc;
            continue;
        }
        if (seen->read_clock > known[seen->read_by])
            fail_mram(run, word, access, pc, seen->read_by, false, seen->read_pc);
        seen->write = (struct written){known[self], (uint8_t)self, pc};
    }
}
