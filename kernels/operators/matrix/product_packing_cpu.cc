#include <algorithm>
#include <cstring>

#include "kernels/cpu/task_memory.h"
#include "kernels/operators/matrix/product_packing.h"

namespace opmill {
namespace {

// Of the element that an output reads; -1 if there is none.
int64_t PositionOf(const ImageAxis& axis, uint64_t output, int64_t tap) {
  const int64_t position = static_cast<int64_t>(output * axis.step) + tap;
  const int64_t spread = static_cast<int64_t>(axis.spread);
  if (spread == 1) return position;
  return position >= 0 && position % spread == 0 ? position / spread : -1;
}

bool IsInside(const ImageAxis& axis, int64_t position) {
  return position >= 0 && position < static_cast<int64_t>(axis.size);
}

// Of `count` outputs, those that read an element of the axis, and the position of the first one.
struct Inside {
  uint64_t first = 0;
  uint64_t count = 0;
  uint64_t position = 0;
};
// `position` is that of output 0. The axis is not spread.
Inside InsideOf(const ImageAxis& axis, int64_t position, uint64_t count) {
  const auto step = static_cast<int64_t>(axis.step);
  const auto size = static_cast<int64_t>(axis.size);
  const auto last = static_cast<int64_t>(count);
  const int64_t low = position >= 0 ? 0 : std::min(last, (-position + step - 1) / step);
  const int64_t high =
      position >= size ? low : std::clamp((size - position + step - 1) / step, low, last);
  if (high == low) return {.first = static_cast<uint64_t>(low)};
  return {.first = static_cast<uint64_t>(low),
          .count = static_cast<uint64_t>(high - low),
          .position = static_cast<uint64_t>(position + low * step)};
}

}  // namespace

uint64_t DepthOffset(const ProductOperand& operand, uint64_t k) {
  const uint64_t taps = operand.tap_offsets.size();
  if (taps == 0) return k * operand.depth_stride;
  return k / taps * operand.depth_stride + operand.tap_offsets[k % taps];
}

void PackPanel(const MatrixKernels& kernels, const Elements& elements,
               const ProductOperand& operand, uint64_t offset, uint64_t first, uint64_t count,
               uint64_t k0, uint64_t depth, uint64_t width, float* to) {
  const uint64_t start = offset + first * operand.stride;
  if (count < width) std::fill_n(to, depth * width, 0.0f);
  if (operand.depth_stride == 1 && operand.tap_offsets.empty()) {
    if (!elements.is_half()) {
      kernels.transpose(elements.floats() + start + k0, operand.stride, count, depth, to, width);
      return;
    }
    TaskMemory::Scope scope;
    float* const floats = reinterpret_cast<float*>(scope.Take(count * depth * sizeof(float)));
    for (uint64_t i = 0; i < count; ++i) {
      elements.Adjacent(start + i * operand.stride + k0, depth, floats + i * depth);
    }
    kernels.transpose(floats, depth, count, depth, to, width);
    return;
  }
  for (uint64_t k = 0; k < depth; ++k) {
    const uint64_t at = start + DepthOffset(operand, k0 + k);
    for (uint64_t i = 0; i < count; ++i) to[k * width + i] = elements.At(at + i * operand.stride);
  }
}

ImageRows::ImageRows(const MatrixKernels& kernels, const ProductImage& image,
                     const Elements& elements, uint64_t offset, uint64_t column, uint64_t columns)
    : kernels_(kernels), image_(image), elements_(elements), offset_(offset), columns_(columns) {
  const auto& axes = image.axes;
  first_[2] = column % axes[2].outputs;
  first_[1] = column / axes[2].outputs % axes[1].outputs;
  first_[0] = column / axes[2].outputs / axes[1].outputs;
}

void ImageRows::Write(uint64_t k, float* to) const {
  const uint64_t taps = image_.taps.size();
  const std::array<int64_t, 3>& tap = image_.taps[k % taps];
  const uint64_t channel = offset_ + k / taps * image_.channel_stride;
  std::array<uint64_t, 3> at = first_;
  const auto& axes = image_.axes;
  for (uint64_t done = 0; done < columns_;) {
    const uint64_t count = std::min(axes[2].outputs - at[2], columns_ - done);
    WriteLine(channel, PositionOf(axes[0], at[0], tap[0]), PositionOf(axes[1], at[1], tap[1]),
              at[2], tap[2], count, to + done);
    done += count;
    at[2] = 0;
    if (++at[1] < axes[1].outputs) continue;
    at[1] = 0;
    ++at[0];
  }
}

void ImageRows::WriteLine(uint64_t channel, int64_t z, int64_t y, uint64_t first, int64_t tap,
                          uint64_t count, float* to) const {
  const auto& axes = image_.axes;
  const ImageAxis& axis = axes[2];
  if (!IsInside(axes[0], z) || !IsInside(axes[1], y)) {
    std::fill_n(to, count, 0.0f);
    return;
  }
  const uint64_t line = channel + static_cast<uint64_t>(z) * axes[0].stride +
                        static_cast<uint64_t>(y) * axes[1].stride;
  if (axis.spread != 1) {
    for (uint64_t i = 0; i < count; ++i) {
      const int64_t x = PositionOf(axis, first + i, tap);
      to[i] = IsInside(axis, x) ? elements_.At(line + static_cast<uint64_t>(x) * axis.stride) : 0;
    }
    return;
  }
  const Inside inside = InsideOf(axis, static_cast<int64_t>(first * axis.step) + tap, count);
  std::fill_n(to, inside.first, 0.0f);
  Copy(line + inside.position * axis.stride, axis.step * axis.stride, inside.count,
       to + inside.first);
  std::fill(to + inside.first + inside.count, to + count, 0.0f);
}

void ImageRows::WriteLines(uint64_t channel, int64_t z, int64_t y, uint64_t lines, int64_t tap,
                           uint64_t count, float* to) const {
  const auto& axes = image_.axes;
  const ImageAxis& axis = axes[2];
  const auto line_at = [&](uint64_t line) { return y + static_cast<int64_t>(line * axes[1].step); };
  const bool has_kernel = !elements_.is_half() && axis.stride == 1 && axis.step <= 2;
  if (!has_kernel || !IsInside(axes[0], z)) {
    for (uint64_t line = 0; line < lines; ++line) {
      WriteLine(channel, z, line_at(line), 0, tap, count, to + line * count);
    }
    return;
  }
  const Inside rows = InsideOf(axes[1], y, lines);
  const Inside inside = InsideOf(axis, tap, count);
  std::fill_n(to, rows.first * count, 0.0f);
  to += rows.first * count;
  kernels_.copy_lines(
      {.from = elements_.floats() + channel + static_cast<uint64_t>(z) * axes[0].stride +
               rows.position * axes[1].stride + inside.position,
       .from_stride = axes[1].step * axes[1].stride,
       .lines = rows.count,
       .step = axis.step,
       .before = inside.first,
       .count = inside.count,
       .after = count - inside.first - inside.count},
      to);
  std::fill_n(to + rows.count * count, (lines - rows.first - rows.count) * count, 0.0f);
}

void ImageRows::Copy(uint64_t from, uint64_t stride, uint64_t count, float* to) const {
  if (count == 0) return;
  if (stride == 1 && elements_.is_half()) {
    FloatsFromHalves(elements_.halves() + from, to, count);
  } else if (stride == 1) {
    std::memcpy(to, elements_.floats() + from, count * sizeof(float));
  } else if (stride == 2 && !elements_.is_half()) {
    for (uint64_t i = 0; i < count; ++i) to[i] = elements_.floats()[from + 2 * i];
  } else {
    for (uint64_t i = 0; i < count; ++i) to[i] = elements_.At(from + i * stride);
  }
}

}  // namespace opmill
