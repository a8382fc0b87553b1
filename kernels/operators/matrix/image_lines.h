// Lines of an image with their padding, as a convolution reads them.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_IMAGE_LINES_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_IMAGE_LINES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/operators/matrix/product_packing.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {

// The inputs of some adjacent lines of outputs, for one channel. They are in planes, one for each
// phase of the steps, so that inputs of adjacent outputs are adjacent, and those of the next line
// of outputs `width` further: output i of line y reads, for tap t, element tap_offsets[t] + y *
// width
// + i.
struct ImageLines {
  ImageLines() = default;
  // `lines` is the most lines of outputs.
  ImageLines(const ProductImage& image, uint64_t lines);

  // Outputs of `count` lines, with what is between them.
  uint64_t SpanOf(uint64_t count) const { return (count - 1) * width + outputs; }
  // The lines of outputs [first, first + count) of plane z.
  void Write(const ImageRows& rows, uint64_t channel_offset, uint64_t z, uint64_t first,
             uint64_t count, float* to) const;

  struct Plane {
    int64_t z = 0;  // of its first element, for output 0
    int64_t y = 0;
    int64_t x = 0;
    friend bool operator==(const Plane&, const Plane&) = default;
  };

  uint64_t outputs = 1;  // of a line
  uint64_t width = 1;
  uint64_t more_lines = 0;  // of inputs than of outputs
  uint64_t plane_floats = 0;
  uint64_t channel_floats = 0;
  std::array<uint64_t, 2> steps = {1, 1};  // along z and y
  std::vector<Plane> planes;
  std::vector<uint32_t> tap_offsets;
};

// Whether the taps are so close to each other that lines are worth copying.
bool CanReadLines(const ProductImage& image);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_IMAGE_LINES_H_
