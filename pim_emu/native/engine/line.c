/* Source lines of program addresses, by addr2line of binutils. Each is asked for once. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

struct emu_line {
    struct emu_line *next;
    uint32_t address;
    char text[160];
};

/* A memory file with the program: the one on disk may be another by now. -1: none. */
static int write_program(const struct emu_program *program) {
    const int file = memfd_create("pim_emu program", 0);
    if (file < 0 || emu_write_all(file, program->elf, program->elf_bytes)) return file;
    close(file);
    return -1;
}

static bool read_line(FILE *stream, char *text, int bytes) {
    if (fgets(text, bytes, stream) == NULL) return false;
    const size_t end = strcspn(text, "\n");
    const bool complete = text[end] == '\n';
    text[end] = '\0';
    for (int c = 0; !complete && c != '\n' && c != EOF;) c = fgetc(stream); /* too long: cut */
    return true;
}

/* addr2line prints the function and then file:line; "??" where it knows nothing. */
static void ask(const struct emu_program *program, uint32_t address, char *text, size_t bytes) {
    snprintf(text, bytes, "0x%x", address);
    const int file = write_program(program);
    if (file < 0) return;
    char command[128], function[64], place[80];
    snprintf(command, sizeof command, "addr2line -s -f -e /proc/%d/fd/%d 0x%x 2>/dev/null",
             (int)getpid(), file, address);
    FILE *answer = popen(command, "re");
    if (answer != NULL) {
        if (read_line(answer, function, sizeof function) &&
            read_line(answer, place, sizeof place) && place[0] != '?') {
            place[strcspn(place, " ")] = '\0'; /* "file.c:12 (discriminator 3)" */
            snprintf(text, bytes, "%s (%s)", place, function);
        }
        pclose(answer);
    }
    close(file);
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
