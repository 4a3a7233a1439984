/* Source lines of program addresses, by addr2line of binutils. Each is asked for once. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

struct emu_line {
    struct emu_line *next;
    uint32_t address;
    char text[160];
};

/* addr2line prints the function and then file:line; "??" where it knows nothing. */
static void ask(const struct emu_program *program, uint32_t address, char *text, size_t bytes) {
    snprintf(text, bytes, "0x%x", address);
    char command[128], function[64] = "", file[80] = "";
    snprintf(command, sizeof command, "addr2line -s -f -e /proc/%d/fd/%d 0x%x 2>/dev/null",
             (int)getpid(), program->file, address);
    FILE *answer = popen(command, "re");
    if (answer == NULL) return;
    const bool complete = fscanf(answer, "%63s %79s", function, file) == 2;
    pclose(answer);
    if (complete && file[0] != '?') snprintf(text, bytes, "%s (%s)", file, function);
}

const char *emu_source_line(struct emu_program *program, uint32_t address) {
    pthread_mutex_lock(&program->lock);
    struct emu_line *line = program->lines;
    while (line != NULL && line->address != address) line = line->next;
    if (line == NULL && (line = malloc(sizeof *line)) != NULL) {
        line->address = address;
        ask(program, address, line->text, sizeof line->text);
        line->next = program->lines;
        program->lines = line;
    }
    pthread_mutex_unlock(&program->lock);
    return line != NULL ? line->text : "?";
}

void emu_free_lines(struct emu_line *lines) {
    while (lines != NULL) {
        struct emu_line *next = lines->next;
        free(lines);
        lines = next;
    }
}

const char *emu_place(struct emu_run *run, const void *pc) {
    const uint8_t *at = pc;
    if (at < run->image->text || at > run->image->text_end) return "?";
    /* A call's return address may belong to the next line. */
    return emu_source_line(run->program,
                           (uint32_t)((uintptr_t)pc - (uintptr_t)run->image->delta) - 1);
}
