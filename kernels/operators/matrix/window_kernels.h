// The processor's kernel of convolutions of one channel, such as depthwise ones.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_WINDOW_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_WINDOW_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace opmill {

// A window over a plane of an image: output (y, x) is the sum of weights[t] * input (y * steps[0] +
// taps[t][0], x * steps[1] + taps[t][1]). Inputs outside of the plane are zeros. Elements of a line
// are adjacent, and so are the lines of outputs. The step along a line is 1 or 2.
struct WindowShape {
  struct Tap {
    int64_t line = 0;
    int64_t offset = 0;  // of its element from that of a tap (0, 0)
  };

  WindowShape() = default;
  WindowShape(const std::vector<std::array<int64_t, 2>>& window, std::array<size_t, 2> plane,
              size_t stride, std::array<size_t, 2> step, std::array<size_t, 2> results,
              size_t lanes);

  std::array<size_t, 2> sizes = {};
  size_t line_stride = 0;
  std::array<size_t, 2> steps = {1, 1};
  std::array<size_t, 2> outputs = {};
  std::vector<Tap> taps;
  // The lines of outputs all of whose taps are in lines of the plane.
  size_t inner_begin = 0;
  size_t inner_end = 0;
  // For each vector of outputs of a line and each tap: which lanes of the steps[1] vectors that it
  // reads are in the plane.
  std::vector<uint16_t> inside;
};

using WindowKernel = void (*)(const WindowShape& shape, const float* plane, const float* weights,
                              float addend, float* result);

// Of the best instruction set; null if that cannot load parts of vectors in one instruction.
WindowKernel FindWindowKernel();

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_WINDOW_KERNELS_H_
