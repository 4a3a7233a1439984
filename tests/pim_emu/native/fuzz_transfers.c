/* Transfers, with whatever can be wrong about them. */
#include <string.h>

#include "fuzz.h"

/* The range of a transfer as an argument, and what may be wrong with it. */
struct request {
    const char *name;
    enum variable variable; /* VARIABLES: none that the model follows */
    uint32_t offset;
    size_t length;
    bool mram;
    uint64_t errors;
};

/* Offsets and lengths around the ends of variables and around multiples of 4 and 8. */
static void choose_request(struct fuzz *fuzz, const struct target *target,
                           struct request *request) {
    static const size_t lengths[] = {0, 4, 8, 12, 16, 32, 64, 256, 1024, 1, 6, 4096, 4104,
                                     (size_t)-4, (size_t)-8, 1ull << 32, (1ull << 32) + 8};
    static const uint32_t offsets[] = {0, 0, 0, 8, 4, 12, 16, 2, 64, 448, 4088, 4096, 0xfffffff8u};
    static const char *const others[] = {"nosuch", "", "main", NULL, DPU_MRAM_HEAP_POINTER_NAME};
    const int program = program_of(target);
    *request = (struct request){.variable = (enum variable)draw(fuzz, VARIABLES)};
    request->offset = offsets[draw(fuzz, sizeof offsets / sizeof *offsets)];
    request->length = lengths[draw(fuzz, chance(fuzz, 80) ? 9 : sizeof lengths / sizeof *lengths)];
    if (chance(fuzz, 50)) { /* one that fits, for the most part */
        request->offset = 0;
        request->length = variable_bytes(request->variable, program);
        if (request->length > MOST_BYTES) request->length = MOST_BYTES;
    }
    request->name = variable_names[request->variable];
    request->mram = request->variable == BUFFER;
    uint64_t size = variable_bytes(request->variable, program);
    request->errors = program_errors(target);
    if (chance(fuzz, 8)) {
        request->name = others[draw(fuzz, sizeof others / sizeof *others)];
        request->variable = VARIABLES;
        request->mram = true;
        size = 60u << 20;
        if (request->name == NULL || *request->name == '\0' || strcmp(request->name, "nosuch") == 0)
            request->errors |= E(UNKNOWN_SYMBOL);
        else if (strcmp(request->name, "main") == 0)
            request->errors |= E(INVALID_IRAM_ACCESS) | E(INVALID_SYMBOL_ACCESS);
    }
    if (request->length > size || request->offset > size - request->length)
        request->errors |= E(INVALID_SYMBOL_ACCESS);
    const uint32_t unit = request->mram ? 8 : 4;
    if (request->offset % unit != 0 || request->length % unit != 0)
        request->errors |= request->mram ? E(INVALID_MRAM_ACCESS) : E(INVALID_WRAM_ACCESS);
}

/* No host buffer holds so much, and none is needed where the call is refused. */
static bool is_too_large(const struct request *request, const struct target *target) {
    return request->errors == 0 && target->errors == 0 && request->length > MOST_BYTES;
}

/* The shadow after bytes went to a DPU; `mode` then decides how launches go. */
static void write_shadow(struct target *target, uint32_t dpu, const struct request *request,
                         const uint8_t *from) {
    struct shadow *shadow = &target->owner->dpus[dpu];
    if (request->variable == VARIABLES) return;
    put(shadow, request->variable, request->offset, from, request->length);
}

/* Flags, and the errors that they are. */
static dpu_xfer_flags_t choose_flags(struct fuzz *fuzz, const struct request *request,
                                     uint64_t *errors) {
    uint32_t flags = 0;
    if (chance(fuzz, 40)) flags |= DPU_XFER_ASYNC;
    if (chance(fuzz, 20)) flags |= DPU_XFER_NO_RESET;
    if (chance(fuzz, 10)) flags |= DPU_XFER_PARALLEL;
    if (chance(fuzz, 3)) flags |= 8u << draw(fuzz, 20);
    if (flags & ~7u) *errors |= E(INVALID_MEMORY_TRANSFER);
    if (flags & DPU_XFER_PARALLEL && request->mram)
        *errors |= E(INVALID_PARALLEL_MEMORY_TRANSFER);
    return (dpu_xfer_flags_t)flags;
}

static enum wait wait_of(dpu_xfer_flags_t flags) {
    if (flags & DPU_XFER_PARALLEL) return BESIDE;
    return flags & DPU_XFER_ASYNC ? QUEUE : IDLE;
}

/* Beside a launch, nobody knows what was there first; only `words` is used so. */
static bool is_unforeseeable(const struct target *target, enum wait wait) {
    return target->owner != NULL && wait == BESIDE && (was_queued(target) || has_error(target));
}

static void draw_mode(struct fuzz *fuzz, const struct request *request, uint8_t *bytes) {
    static const uint32_t modes[] = {0, 0, 0, PRINTS, PRINTS, STOPS, STOPS};
    if (request->variable == MODE && request->errors == 0 && request->length == 4)
        memcpy(bytes, &modes[draw(fuzz, 7)], 4);
}

static void copy_to(struct fuzz *fuzz, struct target *target, struct request *request) {
    uint64_t errors = request->errors;
    const bool plain = chance(fuzz, 40);
    const dpu_xfer_flags_t flags = plain ? DPU_XFER_DEFAULT : choose_flags(fuzz, request, &errors);
    const enum wait wait = wait_of(flags);
    if (wait == BESIDE && request->variable == MODE) return;
    const bool bad = errors != 0 || target->errors != 0;
    struct set *set = target->owner != NULL ? target->owner : NULL;
    uint8_t none[8] = {0}, *bytes = none;
    if (!bad) {
        bytes = new_buffer(fuzz, set, request->length)->bytes;
        draw_mode(fuzz, request, bytes);
        memcpy(set->buffers->expected, bytes, request->length);
    }
    if (chance(fuzz, 4)) {
        bytes = NULL;
        if (request->length > 0) errors |= E(INVALID_MEMORY_TRANSFER);
    }
    const bool lost = is_unforeseeable(target, wait);
    const dpu_error_t got =
        plain ? dpu_copy_to(target->handle, request->name, request->offset, bytes, request->length)
              : dpu_broadcast_to(target->handle, request->name, request->offset, bytes,
                                 request->length, flags);
    /* Nothing is transferred, and nothing waited for. */
    const enum wait waits = request->length == 0 ? NOTHING : wait;
    const bool done = settle(fuzz, "dpu_broadcast_to", target, waits, errors, got);
    if (!done && !lost) return;
    if (target->owner == NULL || errors != 0) return;
    for (uint32_t i = first_dpu(target); i < end_dpu(target); ++i) {
        if (lost)
            forget(&set->dpus[i], request->variable < VARIABLES ? request->variable : WORDS);
        else if (rank_of(set, i)->error == DPU_OK)
            write_shadow(target, i, request, bytes);
    }
}

static void copy_from(struct fuzz *fuzz, struct target *target, struct request *request) {
    uint64_t errors = request->errors;
    if (target->owner != NULL && target->only < 0) errors |= E(INVALID_DPU_SET);
    struct buffer *buffer = NULL;
    if (errors == 0 && target->errors == 0)
        buffer = new_buffer(fuzz, target->owner, request->length);
    uint8_t none[8], *bytes = buffer != NULL ? buffer->bytes : none;
    if (chance(fuzz, 4)) {
        bytes = NULL;
        if (request->length > 0) errors |= E(INVALID_MEMORY_TRANSFER);
    }
    const dpu_error_t got = dpu_copy_from(target->handle, request->name, request->offset, bytes,
                                          request->length);
    const enum wait wait = request->length == 0 ? NOTHING : IDLE;
    if (!settle(fuzz, "dpu_copy_from", target, wait, errors, got) || buffer == NULL) return;
    if (request->variable == VARIABLES)
        memset(buffer->known, 0, request->length);
    else
        get(&target->owner->dpus[target->only], request->variable, request->offset, buffer,
            request->length);
    verify(fuzz, buffer);
}

void do_copy(struct fuzz *fuzz) {
    struct target target;
    struct request request;
    choose_target(fuzz, &target, 5);
    choose_request(fuzz, &target, &request);
    if (is_too_large(&request, &target)) return;
    if (chance(fuzz, 50))
        copy_to(fuzz, &target, &request);
    else
        copy_from(fuzz, &target, &request);
}

static void prepare(struct fuzz *fuzz, const struct target *target, bool with_buffer) {
    uint64_t errors = 0;
    struct set *set = target->owner;
    struct buffer *buffer = NULL;
    uint8_t none[8];
    if (set != NULL && with_buffer) buffer = new_buffer(fuzz, set, MOST_BYTES);
    for (uint32_t i = set != NULL ? first_dpu(target) : 1; set != NULL && i < end_dpu(target); ++i) {
        struct shadow *dpu = &set->dpus[i];
        if (buffer != NULL && dpu->prepared != NULL && !dpu->used)
            errors |= E(TRANSFER_ALREADY_SET);
        dpu->prepared = buffer;
        dpu->used = false;
    }
    uint8_t *bytes = set == NULL ? none : buffer != NULL ? buffer->bytes : NULL;
    settle(fuzz, "dpu_prepare_xfer", target, NOTHING, errors,
           dpu_prepare_xfer(target->handle, bytes));
}

void do_prepare(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 5);
    if (target.owner == NULL || target.only >= 0 || chance(fuzz, 10)) {
        prepare(fuzz, &target, target.owner == NULL || target.only >= 0 ? chance(fuzz, 80) : false);
        return;
    }
    struct dpu_set_t dpu;
    uint32_t index;
    DPU_FOREACH (target.handle, dpu, index) {
        if (chance(fuzz, 10)) continue; /* left out */
        struct target one = target;
        one.handle = dpu;
        one.only = (int)(first_dpu(&target) + index);
        one.first_rank = (uint32_t)(rank_of(target.owner, (uint32_t)one.only) - target.owner->ranks);
        one.nr_ranks = 1;
        prepare(fuzz, &one, true);
    }
}

static void apply_push(struct fuzz *fuzz, struct target *target, const struct request *request,
                       dpu_xfer_t direction, dpu_xfer_flags_t flags, bool done, bool lost) {
    struct set *set = target->owner;
    for (uint32_t i = first_dpu(target); i < end_dpu(target); ++i) {
        struct shadow *dpu = &set->dpus[i];
        struct buffer *buffer = dpu->prepared;
        if (flags & DPU_XFER_NO_RESET)
            dpu->used = true;
        else
            dpu->prepared = NULL;
        if (buffer == NULL) continue;
        if (lost || request->variable == VARIABLES) {
            if (direction == DPU_XFER_FROM_DPU) memset(buffer->known, 0, buffer->size);
            else if (request->variable < VARIABLES) forget(dpu, request->variable);
        } else if (done && rank_of(set, i)->error == DPU_OK) {
            if (direction == DPU_XFER_FROM_DPU) {
                get(dpu, request->variable, request->offset, buffer, request->length);
            } else {
                put(dpu, request->variable, request->offset, buffer->expected, request->length);
                for (size_t at = 0; at < request->length; ++at)
                    if (!buffer->known[at]) dpu->known[request->variable][request->offset + at] = 0;
            }
        }
    }
    (void)fuzz;
}

void do_push(struct fuzz *fuzz) {
    struct target target;
    struct request request;
    choose_target(fuzz, &target, 5);
    choose_request(fuzz, &target, &request);
    if (is_too_large(&request, &target) || request.variable == MODE) return;
    uint64_t errors = request.errors;
    const dpu_xfer_flags_t flags = choose_flags(fuzz, &request, &errors);
    dpu_xfer_t direction = chance(fuzz, 50) ? DPU_XFER_TO_DPU : DPU_XFER_FROM_DPU;
    if (chance(fuzz, 3)) {
        direction = (dpu_xfer_t)(2 + draw(fuzz, 9));
        errors |= E(INVALID_MEMORY_TRANSFER);
    }
    const bool lost = is_unforeseeable(&target, wait_of(flags));
    if (lost && request.variable != WORDS) return;
    const dpu_error_t got = dpu_push_xfer(target.handle, direction, request.name, request.offset,
                                          request.length, flags);
    const bool done = settle(fuzz, "dpu_push_xfer", &target, wait_of(flags), errors, got);
    if (target.owner == NULL || errors != 0) return;
    /* Buffers of a call that an earlier error refused are used up all the same. */
    apply_push(fuzz, &target, &request, direction, flags, done, lost);
}

/* Memories by address: what was written is read again, far from the program's variables. */
void do_direct(struct fuzz *fuzz) {
    static const uint32_t offsets[] = {32u << 20, (64u << 20) - 64, (64u << 20) - 56, 64u << 20,
                                       (32u << 20) + 4, 0xfffffff8u};
    struct target target;
    uint8_t in[64] = {0}, out[64] = {0};
    choose_target(fuzz, &target, 5);
    if (target.owner == NULL || target.only < 0 || was_queued(&target)) return;
    if (target.owner->wanders) return;
    struct dpu_t *dpu = target.handle.dpu;
    const uint32_t offset = offsets[draw(fuzz, 6)];
    const uint64_t errors = offset % 8 || offset > (64u << 20) - 64 ? E(INVALID_MRAM_ACCESS) : 0;
    for (uint32_t i = 0; i < sizeof in; ++i) in[i] = (uint8_t)draw(fuzz, 256);
    const bool wrote = settle(fuzz, "dpu_copy_to_mram", &target, IDLE, errors,
                              dpu_copy_to_mram(dpu, offset, in, sizeof in));
    const bool read = settle(fuzz, "dpu_copy_from_mram", &target, IDLE, errors,
                             dpu_copy_from_mram(dpu, out, offset, sizeof out));
    if (wrote && read && memcmp(in, out, sizeof in) != 0) fail(fuzz, "MRAM lost what it got");
    const uint32_t word = chance(fuzz, 50) ? draw(fuzz, 15000) : 16384 - 15 + draw(fuzz, 1u << 20);
    settle(fuzz, "dpu_copy_from_wram_for_dpu", &target, IDLE,
           word < 15000 ? 0 : E(INVALID_WRAM_ACCESS),
           dpu_copy_from_wram_for_dpu(dpu, (dpuword_t *)(void *)out, word, 16));
}

/* --- Scattered: each DPU has as many blocks of one size, which follow each other. --- */
struct plan {
    uint8_t *bytes;
    uint32_t blocks, block_bytes;
    bool null;
};

static bool next_block(struct sg_block_info *out, uint32_t dpu, uint32_t index, void *arguments) {
    const struct plan *plan = arguments;
    if (index >= plan->blocks) return false;
    out->length = plan->block_bytes;
    out->addr = plan->null ? NULL
                           : plan->bytes + ((size_t)dpu * plan->blocks + index) * plan->block_bytes;
    return true;
}

/* What the blocks themselves do wrong: found when the transfer's turn comes. */
static uint64_t plan_errors(const struct plan *plan, const struct set *set, size_t length,
                            uint32_t flags) {
    uint64_t errors = 0;
    if (plan->blocks > set->most_blocks) errors |= E(SG_TOO_MANY_BLOCKS);
    if (plan->null && plan->blocks > 0 && plan->block_bytes > 0)
        errors |= E(INVALID_MEMORY_TRANSFER);
    if (plan->blocks * plan->block_bytes != length && !(flags & DPU_SG_XFER_DISABLE_LENGTH_CHECK))
        errors |= E(SG_LENGTH_MISMATCH);
    return errors;
}

static void apply_scatter(struct target *target, const struct request *request,
                          const struct plan *plan, struct buffer *buffer, dpu_xfer_t direction) {
    struct set *set = target->owner;
    const size_t all = (size_t)plan->blocks * plan->block_bytes;
    const size_t bytes = all < request->length ? all : request->length;
    static const uint8_t zeros[MOST_BYTES];
    for (uint32_t i = first_dpu(target); i < end_dpu(target); ++i) {
        struct shadow *dpu = &set->dpus[i];
        if (rank_of(set, i)->error != DPU_OK || bytes == 0) continue;
        uint8_t *known = dpu->known[BUFFER] + request->offset;
        uint8_t *shadow = dpu->bytes[BUFFER] + request->offset;
        if (direction == DPU_XFER_TO_DPU) {
            put(dpu, BUFFER, request->offset, buffer->expected + i * all, bytes);
            put(dpu, BUFFER, request->offset + (uint32_t)bytes, zeros, request->length - bytes);
        } else {
            memcpy(buffer->expected + i * all, shadow, bytes);
            memcpy(buffer->known + i * all, known, bytes);
        }
    }
}

void do_scatter(struct fuzz *fuzz) {
    struct target target;
    struct request request;
    choose_target(fuzz, &target, 5);
    choose_request(fuzz, &target, &request);
    struct set *set = target.owner;
    if (set == NULL || request.variable == VARIABLES || is_too_large(&request, &target)) return;
    uint64_t errors = request.errors;
    /* An offset beyond MRAM leads out of it. */
    if (!request.mram || request.offset > 0x7ffffff) errors |= E(SG_NOT_MRAM_SYMBOL);
    if (target.only >= 0) errors |= E(INTERNAL);
    if (!set->scatter) errors |= E(SG_NOT_ACTIVATED);
    uint32_t flags = (chance(fuzz, 40) ? DPU_SG_XFER_ASYNC : 0) |
                     (chance(fuzz, 30) ? DPU_SG_XFER_DISABLE_LENGTH_CHECK : 0);
    if (chance(fuzz, 3)) flags |= 8;
    if (flags & 8) errors |= E(INVALID_MEMORY_TRANSFER);
    struct plan plan = {.blocks = draw(fuzz, 6), .null = chance(fuzz, 3)};
    plan.block_bytes = plan.blocks == 0 ? 0 : (uint32_t)(request.length % 4097) / plan.blocks;
    if (chance(fuzz, 20)) plan.block_bytes = draw(fuzz, 50);
    struct buffer *buffer =
        new_buffer(fuzz, set, (size_t)set->nr_dpus * plan.blocks * plan.block_bytes);
    plan.bytes = buffer->bytes;
    get_block_t blocks = {next_block, &plan, sizeof plan};
    get_block_t *given = chance(fuzz, 3) ? NULL : &blocks;
    if (chance(fuzz, 3)) blocks.f = NULL;
    if (given == NULL || blocks.f == NULL) errors |= E(INVALID_MEMORY_TRANSFER);
    const dpu_xfer_t direction = chance(fuzz, 50) ? DPU_XFER_TO_DPU : DPU_XFER_FROM_DPU;
    const uint64_t late = plan_errors(&plan, set, request.length, flags);
    const bool queued = flags & DPU_SG_XFER_ASYNC;
    if (queued && __builtin_popcountll(late) > 1) return; /* which of them, nobody says */
    const dpu_error_t got =
        dpu_push_sg_xfer(target.handle, direction, request.name, request.offset, request.length,
                         given, (dpu_sg_xfer_flags_t)flags);
    const bool done = settle(fuzz, "dpu_push_sg_xfer", &target, queued ? QUEUE : IDLE,
                             queued ? errors : errors | late, got);
    if (!done) return;
    if (late == 0) {
        apply_scatter(&target, &request, &plan, buffer, direction);
        return;
    }
    for (uint32_t i = 0; i < target.nr_ranks; ++i) {
        struct rank *rank = &set->ranks[target.first_rank + i];
        if (rank->error != DPU_OK) continue;
        rank->error = (dpu_error_t)__builtin_ctzll(late);
        rank->error_kind = 3;
    }
}
