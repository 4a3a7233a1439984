#pragma once

#include <cstdint>
#include <vector>

#include "common.h"

/* An image whose pixels are far from equally frequent. */
std::vector<pixel_t> make_image(std::size_t pixels, std::uint32_t seed);

std::vector<std::uint32_t> histogram_host(const std::vector<pixel_t> &image);
