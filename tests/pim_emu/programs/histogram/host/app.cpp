/* Histogram of an image by many DPUs, in two ways. */
extern "C" {
#include <dpu.h>
#include <dpu_log.h>
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "image.hpp"

#ifndef DPU_BINARY
#define DPU_BINARY "./bin/dpu_code"
#endif

namespace {

/* The set of DPUs that a program runs on, given back at the end. */
class System {
  public:
    explicit System(std::uint32_t nr_dpus) {
        DPU_ASSERT(dpu_alloc(nr_dpus, nullptr, &set));
        DPU_ASSERT(dpu_load(set, DPU_BINARY, nullptr));
    }
    System(const System &) = delete;
    System &operator=(const System &) = delete;
    ~System() { DPU_ASSERT(dpu_free(set)); }

    std::uint32_t size() const {
        std::uint32_t nr_dpus;
        DPU_ASSERT(dpu_get_nr_dpus(set, &nr_dpus));
        return nr_dpus;
    }

    dpu_set_t set;
};

} // namespace

int main(int argc, char **argv) {
    std::uint32_t wanted = NR_DPUS;
    std::size_t pixels = 30011;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i];
        if (option == "-d") {
            wanted = static_cast<std::uint32_t>(std::stoul(argv[i + 1]));
        } else if (option == "-i") {
            pixels = std::stoul(argv[i + 1]);
        }
    }

    System system(wanted);
    const std::uint32_t nr_dpus = system.size();
    auto image = make_image(pixels, 2024);
    const auto expected = histogram_host(image);

    const std::size_t per_dpu = ((pixels + nr_dpus - 1) / nr_dpus + 3) / 4 * 4;
    const std::size_t transfer_size = per_dpu * sizeof(pixel_t);
    image.resize(per_dpu * nr_dpus);

    bool correct = true;
    for (std::uint32_t kernel = 0; kernel < NR_KERNELS; ++kernel) {
        std::vector<dpu_arguments> arguments(nr_dpus);
        dpu_set_t dpu;
        std::uint32_t i;
        DPU_FOREACH(system.set, dpu, i) {
            const std::size_t first = std::min(pixels, i * per_dpu);
            arguments[i].pixels = static_cast<std::uint32_t>(std::min(per_dpu, pixels - first));
            arguments[i].transfer_size = static_cast<std::uint32_t>(transfer_size);
            arguments[i].kernel = kernel;
            DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[i]));
        }
        DPU_ASSERT(dpu_push_xfer(system.set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0,
                                 sizeof(dpu_arguments), DPU_XFER_DEFAULT));
        DPU_FOREACH(system.set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, image.data() + i * per_dpu));
        }
        DPU_ASSERT(dpu_push_xfer(system.set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                                 transfer_size, DPU_XFER_DEFAULT));

        DPU_ASSERT(dpu_launch(system.set, DPU_SYNCHRONOUS));

        std::vector<std::uint32_t> partial(static_cast<std::size_t>(nr_dpus) * BINS);
        DPU_FOREACH(system.set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, &partial[static_cast<std::size_t>(i) * BINS]));
        }
        DPU_ASSERT(dpu_push_xfer(system.set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                                 static_cast<std::uint32_t>(transfer_size),
                                 BINS * sizeof(std::uint32_t), DPU_XFER_DEFAULT));
        std::uint64_t slowest = 0;
        DPU_FOREACH(system.set, dpu) {
            dpu_results results;
            DPU_ASSERT(dpu_copy_from(dpu, "DPU_RESULTS", 0, &results, sizeof(results)));
            slowest = std::max(slowest, results.cycles);
        }

        std::vector<std::uint32_t> total(BINS, 0);
        for (std::size_t j = 0; j < partial.size(); ++j) {
            total[j % BINS] += partial[j];
        }
        const bool equal = total == expected;
        correct = correct && equal;
        std::printf("%s histogram: DPU cycles (slowest): %llu: %s\n",
                    kernel == KERNEL_SHARED ? "shared" : "private",
                    static_cast<unsigned long long>(slowest), equal ? "OK" : "ERROR");
    }
    return correct ? EXIT_SUCCESS : EXIT_FAILURE;
}
