#include <algorithm>
#include <utility>

#include "kernels/operators/matrix/image_lines.h"

namespace opmill {
namespace {

constexpr int64_t kMostSpan = 64;

// The first and last tap along an axis.
std::pair<int64_t, int64_t> RangeOf(const ProductImage& image, size_t axis) {
  const auto [low, high] =
      std::minmax_element(image.taps.begin(), image.taps.end(),
                          [&](const auto& a, const auto& b) { return a[axis] < b[axis]; });
  return {(*low)[axis], (*high)[axis]};
}

}  // namespace

ImageLines::ImageLines(const ProductImage& image, uint64_t lines)
    : outputs(image.axes[2].outputs), steps{image.axes[0].step, image.axes[1].step} {
  const auto [low_y, high_y] = RangeOf(image, 1);
  const auto [low_x, high_x] = RangeOf(image, 2);
  const auto y_step = static_cast<int64_t>(image.axes[1].step);
  const auto x_step = static_cast<int64_t>(image.axes[2].step);
  width = outputs + static_cast<uint64_t>((high_x - low_x) / x_step);
  more_lines = static_cast<uint64_t>((high_y - low_y) / y_step);
  plane_floats = (lines + more_lines) * width;
  for (const std::array<int64_t, 3>& tap : image.taps) {
    const int64_t y = tap[1] - low_y;
    const int64_t x = tap[2] - low_x;
    const Plane plane = {.z = tap[0], .y = low_y + y % y_step, .x = low_x + x % x_step};
    auto found = std::find(planes.begin(), planes.end(), plane);
    if (found == planes.end()) found = planes.insert(planes.end(), plane);
    tap_offsets.push_back(static_cast<uint32_t>(
        static_cast<uint64_t>(found - planes.begin()) * plane_floats +
        static_cast<uint64_t>(y / y_step) * width + static_cast<uint64_t>(x / x_step)));
  }
  channel_floats = planes.size() * plane_floats;
}

void ImageLines::Write(const ImageRows& rows, uint64_t channel_offset, uint64_t z, uint64_t first,
                       uint64_t count, float* to) const {
  for (const Plane& plane : planes) {
    const int64_t at_z = static_cast<int64_t>(z * steps[0]) + plane.z;
    rows.WriteLines(channel_offset, at_z, static_cast<int64_t>(first * steps[1]) + plane.y,
                    count + more_lines, plane.x, width, to);
    to += plane_floats;
  }
}

bool CanReadLines(const ProductImage& image) {
  if (image.taps.empty()) return false;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto [low, high] = RangeOf(image, axis);
    if (high - low > kMostSpan || image.axes[axis].spread != 1) return false;
  }
  return true;
}

}  // namespace opmill
