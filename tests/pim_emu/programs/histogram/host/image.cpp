#include "image.hpp"

std::vector<pixel_t> make_image(std::size_t pixels, std::uint32_t seed) {
    std::vector<pixel_t> image(pixels);
    const auto random = [&seed] {
        seed = seed * 1664525u + 1013904223u;
        return seed >> (32 - DEPTH);
    };
    for (auto &pixel : image) {
        pixel = static_cast<pixel_t>(random() & random());
    }
    return image;
}

std::vector<std::uint32_t> histogram_host(const std::vector<pixel_t> &image) {
    std::vector<std::uint32_t> bins(BINS, 0);
    for (const pixel_t pixel : image) {
        ++bins[static_cast<std::size_t>(pixel) * BINS / (1u << DEPTH)];
    }
    return bins;
}
