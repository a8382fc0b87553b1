#include "client/cli/layers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace opmill {
namespace {

// In pixels.
constexpr double kGap = 16;       // between neighbours in a layer
constexpr double kLaneWidth = 8;  // of a line that passes a layer
constexpr double kLayerGap = 44;
constexpr int kSweeps = 4;

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// A box, or the place where lines from a box pass a layer.
struct Slot {
  size_t layer = 0;
  double width = 0;
  size_t box = kNone;
  std::vector<size_t> above;  // the slots that lines come from
  std::vector<size_t> below;
  double centre = 0;
};

class LayerPlacer {
 public:
  explicit LayerPlacer(const std::vector<LayerBox>& boxes) : boxes_(boxes) {
    for (size_t b = 0; b < boxes.size(); ++b) {
      size_t layer = 0;
      for (const uint32_t input : boxes[b].inputs) {
        layer = std::max(layer, slots_[input].layer + 1);
      }
      AddSlot({.layer = layer, .width = boxes[b].width, .box = b});
    }
    for (size_t b = 0; b < boxes.size(); ++b) {
      for (const uint32_t input : boxes[b].inputs) {
        if (HasLine(input, b)) Connect(LaneTo(input, slots_[b].layer), b);
      }
    }
  }

  Layers Place() && {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (size_t layer = 1; layer < layers_.size(); ++layer) Order(layer, &Slot::above);
      for (size_t layer = layers_.size(); layer-- > 0;) Order(layer, &Slot::below);
    }
    for (size_t layer = 0; layer < layers_.size(); ++layer) Align(layer, &Slot::above);
    for (size_t layer = layers_.size(); layer-- > 0;) Align(layer, &Slot::below);
    for (size_t layer = 1; layer < layers_.size(); ++layer) Align(layer, &Slot::above);
    return Result();
  }

 private:
  using Neighbours = std::vector<size_t> Slot::*;

  size_t AddSlot(Slot slot) {
    const size_t index = slots_.size();
    if (slot.layer >= layers_.size()) layers_.resize(slot.layer + 1);
    slot.centre = static_cast<double>(layers_[slot.layer].size());
    layers_[slot.layer].push_back(index);
    slots_.push_back(std::move(slot));
    return index;
  }

  bool HasLine(size_t from, size_t to) const {
    return slots_[to].layer - slots_[from].layer <= kMostPassedLayers + 1;
  }

  void Connect(size_t from, size_t to) {
    slots_[from].below.push_back(to);
    slots_[to].above.push_back(from);
  }

  // The slot of the box, or of its lane, in the layer above `layer`. Lines from a box share lanes.
  size_t LaneTo(uint32_t box, size_t layer) {
    size_t at = box;
    for (size_t l = slots_[box].layer + 1; l < layer; ++l) {
      const auto [lane, is_new] = lanes_.try_emplace({box, l}, slots_.size());
      if (is_new) Connect(at, AddSlot({.layer = l, .width = kLaneWidth}));
      at = lane->second;
    }
    return at;
  }

  double Mean(const Slot& slot, Neighbours neighbours) const {
    if ((slot.*neighbours).empty()) return slot.centre;
    double sum = 0;
    for (const size_t other : slot.*neighbours) sum += slots_[other].centre;
    return sum / static_cast<double>((slot.*neighbours).size());
  }

  // By the mean position of their neighbours, so that few lines cross.
  void Order(size_t layer, Neighbours neighbours) {
    std::vector<size_t>& order = layers_[layer];
    std::vector<std::pair<double, size_t>> means;
    for (const size_t slot : order) means.emplace_back(Mean(slots_[slot], neighbours), slot);
    std::stable_sort(means.begin(), means.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = means[i].second;
      slots_[order[i]].centre = static_cast<double>(i);
    }
  }

  // As near as possible to their neighbours, in their order and without overlaps: the least sum of
  // squared distances. Slots that would overlap form groups, which move together.
  void Align(size_t layer, Neighbours neighbours) {
    struct Group {
      double sum = 0;  // of the positions that its slots want, less their offsets
      double count = 0;
      double position() const { return sum / count; }
    };
    const std::vector<size_t>& order = layers_[layer];
    std::vector<Group> groups;
    std::vector<double> offsets;  // of the centres, if all slots touched
    double offset = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Slot& slot = slots_[order[i]];
      if (i > 0) offset += slots_[order[i - 1]].width / 2 + kGap + slot.width / 2;
      offsets.push_back(offset);
      groups.push_back({Mean(slot, neighbours) - offset, 1});
      while (groups.size() > 1 && groups.back().position() <= groups.end()[-2].position()) {
        groups.end()[-2].sum += groups.back().sum;
        groups.end()[-2].count += groups.back().count;
        groups.pop_back();
      }
    }
    size_t i = 0;
    for (const Group& group : groups) {
      for (double left = group.count; left > 0; --left, ++i) {
        slots_[order[i]].centre = group.position() + offsets[i];
      }
    }
  }

  Layers Result() const {
    Layers result;
    double left = std::numeric_limits<double>::max();
    double right = std::numeric_limits<double>::lowest();
    for (const Slot& slot : slots_) {
      left = std::min(left, slot.centre - slot.width / 2);
      right = std::max(right, slot.centre + slot.width / 2);
    }
    std::vector<double> tops;
    std::vector<double> heights;
    for (const std::vector<size_t>& layer : layers_) {
      tops.push_back(tops.empty() ? 0 : tops.back() + heights.back() + kLayerGap);
      double height = 0;
      for (const size_t slot : layer) {
        if (slots_[slot].box != kNone) height = std::max(height, boxes_[slots_[slot].box].height);
      }
      heights.push_back(height);
    }
    result.width = slots_.empty() ? 0 : right - left;
    result.height = tops.empty() ? 0 : tops.back() + heights.back();
    for (size_t b = 0; b < boxes_.size(); ++b) {
      const Slot& slot = slots_[b];
      result.boxes.push_back({slot.centre - slot.width / 2 - left, tops[slot.layer]});
      for (const uint32_t input : boxes_[b].inputs) {
        if (!HasLine(input, b)) continue;
        result.lines.push_back({input, static_cast<uint32_t>(b), {}});
        AddPoints(input, b, left, tops, heights, result.lines.back().points);
      }
    }
    return result;
  }

  void AddPoints(uint32_t from, size_t to, double left, const std::vector<double>& tops,
                 const std::vector<double>& heights, std::vector<Point>& points) const {
    const Slot& source = slots_[from];
    points.push_back({source.centre - left, tops[source.layer] + boxes_[from].height});
    points.push_back({source.centre - left, tops[source.layer] + heights[source.layer]});
    for (size_t l = source.layer + 1; l < slots_[to].layer; ++l) {
      const double x = slots_[lanes_.at({from, l})].centre - left;
      points.push_back({x, tops[l]});
      points.push_back({x, tops[l] + heights[l]});
    }
    points.push_back({slots_[to].centre - left, tops[slots_[to].layer]});
  }

  const std::vector<LayerBox>& boxes_;
  std::vector<Slot> slots_;                              // those of boxes first
  std::vector<std::vector<size_t>> layers_;              // their slots, from left to right
  std::map<std::pair<uint32_t, size_t>, size_t> lanes_;  // by box and layer
};

}  // namespace

Layers PlaceInLayers(const std::vector<LayerBox>& boxes) { return LayerPlacer(boxes).Place(); }

}  // namespace opmill
