/* Profiles: "key=value,key=value". The vendor's keys are known, and their values checked; most say
 * nothing to an emulator. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "host.h"

#define LONGEST_PROFILE 1024u

enum kind { TEXT, NUMBER, TRUTH, BACKEND };
static const struct {
    const char *name;
    enum kind kind;
} keys[] = {
    {"backend", BACKEND},
    {"machine", TEXT},
    {"dispatchOnAllRanks", TRUTH},
    {"sgXferEnable", TRUTH},
    {"sgXferMaxBlocksPerDpu", NUMBER},
    {"nrThreadsPerRank", NUMBER},
    {"nrThreadPerRank", NUMBER},
    {"nrJobsPerRank", NUMBER},
    {"nrJobPerRank", NUMBER},
    {"nrThreadPerPool", NUMBER},
    {"poolThreshold1Thread", NUMBER},
    {"poolThreshold2Threads", NUMBER},
    {"poolThreshold4Threads", NUMBER},
    {"regionMode", TEXT},
    {"rankPath", TEXT},
    {"chipId", NUMBER},
    {"clockDivision", NUMBER},
    {"fckFrequency", NUMBER},
    {"disabledMask", NUMBER},
    {"cmdsBufferSize", NUMBER},
    {"cycleAccurate", TRUTH},
    {"mramAccessByDpuOnly", TRUTH},
    {"disableSafeChecks", TRUTH},
    {"disableMuxSwitch", TRUTH},
    {"disableResetOnAlloc", TRUTH},
    {"ignoreVersion", TRUTH},
    {"ignoreVpd", TRUTH},
    {"tryRepairIram", TRUTH},
    {"tryRepairWram", TRUTH},
    {"enableProfiling", TEXT},
    {"profilingDpuId", NUMBER},
    {"profilingSliceId", NUMBER},
    {"mcountAddress", NUMBER},
    {"retMcountAddress", NUMBER},
    {"threadProfilingAddress", NUMBER},
    {"nrDpusPerCi", NUMBER},
    {"iramSize", NUMBER},
    {"mramSize", NUMBER},
    {"wramSize", NUMBER},
};

static bool parse_truth(const char *text, bool *value) {
    *value = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *value || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool parse_number(const char *text, uint64_t *value) {
    if (!isdigit((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return errno == 0 && *end == '\0';
}

static bool is_backend(const char *text) {
    static const char *const names[] = {"simulator", "cas", "model", "hw", "spi", "scenario"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (strcmp(text, names[i]) == 0) return true;
    return false;
}

static bool set_value(struct profile *profile, const char *key, enum kind kind, const char *text) {
    bool truth = false;
    uint64_t number = 0;
    if (kind == BACKEND) return is_backend(text);
    if (kind == TRUTH && !parse_truth(text, &truth)) return false;
    if (kind == NUMBER && !parse_number(text, &number)) return false;
    if (strcmp(key, "machine") == 0) return (profile->machine = emu_find_machine(text)) != NULL;
    if (strcmp(key, "dispatchOnAllRanks") == 0) profile->dispatch = truth;
    if (strcmp(key, "sgXferEnable") == 0) profile->scatter = truth;
    if (strcmp(key, "sgXferMaxBlocksPerDpu") == 0) {
        if (number == 0 || number > UINT32_MAX) return false;
        profile->most_blocks = (uint32_t)number;
    }
    return true;
}

/* Without spaces and quotes around it, which scripts leave in the environment. */
static char *trim(char *text) {
    static const char around[] = " \t\n\"'";
    text += strspn(text, around);
    size_t length = strlen(text);
    while (length > 0 && strchr(around, text[length - 1]) != NULL) text[--length] = '\0';
    return text;
}

static bool parse_pair(struct profile *profile, char *pair) {
    char *equal = strchr(pair, '=');
    if (equal == NULL) {
        host_refuse(DPU_ERR_INVALID_PROFILE, "profile: \"%s\" is not key=value", pair);
        return false;
    }
    *equal = '\0';
    const char *key = trim(pair), *value = trim(equal + 1);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
        if (strcmp(key, keys[i].name) != 0) continue;
        if (set_value(profile, key, keys[i].kind, value)) return true;
        host_refuse(DPU_ERR_INVALID_PROFILE, "profile: %s cannot be \"%s\"", key, value);
        return false;
    }
    host_refuse(DPU_ERR_INVALID_PROFILE, "profile: unknown key \"%s\"", key);
    return false;
}

static bool parse(struct profile *profile, const char *text) {
    char copy[LONGEST_PROFILE];
    if (text == NULL) return true;
    if (strlen(text) >= sizeof copy) {
        host_refuse(DPU_ERR_INVALID_PROFILE, "profile: longer than %u characters",
                    LONGEST_PROFILE - 1);
        return false;
    }
    char *rest = trim(strcpy(copy, text));
    if (*rest == '\0') return true;
    for (char *pair; (pair = strsep(&rest, ",")) != NULL;)
        if (!parse_pair(profile, pair)) return false;
    return true;
}

bool host_parse_profile(const char *text, struct profile *profile) {
    *profile = (struct profile){0};
    if (!parse(profile, getenv("UPMEM_PROFILE_BASE")) || !parse(profile, getenv("UPMEM_PROFILE")) ||
        !parse(profile, text))
        return false;
    if (profile->machine != NULL) return true;
    const char *name = getenv("PIM_EMU_MACHINE");
    if (name != NULL && *name == '\0') name = NULL;
    profile->machine = emu_find_machine(name);
    if (profile->machine != NULL) return true;
    host_refuse(DPU_ERR_INVALID_PROFILE, "PIM_EMU_MACHINE: unknown machine \"%s\"", name);
    return false;
}
