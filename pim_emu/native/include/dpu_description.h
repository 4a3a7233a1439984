/* What a rank is made of. */
#ifndef DPU_DESCRIPTION_H
#define DPU_DESCRIPTION_H

#include <stdint.h>

#include <dpu_target.h>
#include <dpu_types.h>

struct dpu_hw_description_t {
    struct {
        uint32_t fck_frequency_in_mhz; /* of a DPU, times clock_division */
        uint8_t clock_division;
    } timings;
    struct {
        uint8_t nr_of_control_interfaces;
        uint8_t nr_of_dpus_per_control_interface;
    } topology;
    struct {
        mram_size_t mram_size; /* bytes */
        wram_size_t wram_size; /* words */
        iram_size_t iram_size; /* instructions */
    } memories;
    struct {
        uint8_t nr_of_threads;
    } dpu;
};

typedef struct _dpu_description_t {
    struct dpu_hw_description_t hw;
    dpu_type_t type;
} *dpu_description_t;

#ifdef __cplusplus
extern "C" {
#endif

/* One of dpu_get_profile_description; that of a rank is the rank's own. */
void dpu_free_description(dpu_description_t description);

#ifdef __cplusplus
}
#endif

#endif
