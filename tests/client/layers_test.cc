#include "client/cli/layers.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace opmill {
namespace {

struct Drawing {
  const char* name;
  std::vector<LayerBox> boxes;
};

LayerBox Box(std::vector<uint32_t> inputs, double height = 50) {
  return {300, height, std::move(inputs)};
}

std::vector<LayerBox> Chain(uint32_t count) {
  std::vector<LayerBox> boxes = {Box({})};
  for (uint32_t i = 1; i < count; ++i) boxes.push_back(Box({i - 1}, 40 + i % 7 * 15));
  return boxes;
}

// Every box reads up to four earlier ones.
std::vector<LayerBox> Tangle(uint32_t count) {
  std::vector<LayerBox> boxes;
  uint32_t random = 1;
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<uint32_t> inputs;
    for (uint32_t k = 0; i > 0 && k < i % 5; ++k) {
      random = random * 1664525 + 1013904223;
      inputs.push_back((random >> 8) % i);
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    boxes.push_back(Box(std::move(inputs), 35 + i % 11 * 15));
  }
  return boxes;
}

// A chain whose last box reads all others.
std::vector<LayerBox> ManyIntoOne(uint32_t count) {
  std::vector<LayerBox> boxes = Chain(count);
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < count; ++i) all.push_back(i);
  boxes.push_back(Box(std::move(all)));
  return boxes;
}

std::vector<Drawing> Cases() {
  return {{"none", {}},
          {"one", {Box({})}},
          {"two", {Box({}), Box({})}},
          {"chain", Chain(30)},
          {"diamond", {Box({}), Box({0}, 90), Box({0}), Box({1, 2}), Box({0, 3})}},
          {"tangle", Tangle(300)},
          {"many into one", ManyIntoOne(60)}};
}

struct Area {
  double left, top, right, bottom;
};

std::vector<Area> AreasOf(const std::vector<LayerBox>& boxes, const Layers& layers) {
  std::vector<Area> areas;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Point& at = layers.boxes[i];
    areas.push_back({at.x, at.y, at.x + boxes[i].width, at.y + boxes[i].height});
  }
  return areas;
}

constexpr double kRounding = 1e-6;

TEST(PlaceInLayers, NothingOverlapsOrIsOutside) {
  for (const Drawing& test : Cases()) {
    SCOPED_TRACE(test.name);
    const Layers layers = PlaceInLayers(test.boxes);
    ASSERT_EQ(layers.boxes.size(), test.boxes.size());
    const std::vector<Area> areas = AreasOf(test.boxes, layers);
    for (size_t i = 0; i < areas.size(); ++i) {
      const Area& a = areas[i];
      EXPECT_GE(a.left, -kRounding);
      EXPECT_GE(a.top, 0);
      EXPECT_LE(a.right, layers.width + kRounding);
      EXPECT_LE(a.bottom, layers.height);
      for (size_t j = 0; j < i; ++j) {
        const Area& b = areas[j];
        EXPECT_TRUE(a.right <= b.left + kRounding || b.right <= a.left + kRounding ||
                    a.bottom <= b.top || b.bottom <= a.top)
            << i << " and " << j;
      }
      for (const uint32_t input : test.boxes[i].inputs) EXPECT_GT(a.top, areas[input].bottom);
    }
  }
}

TEST(PlaceInLayers, LinesCrossNoBox) {
  for (const Drawing& test : Cases()) {
    SCOPED_TRACE(test.name);
    const Layers layers = PlaceInLayers(test.boxes);
    const std::vector<Area> areas = AreasOf(test.boxes, layers);
    size_t inputs = 0;
    for (const LayerBox& box : test.boxes) inputs += box.inputs.size();
    EXPECT_EQ(layers.lines.size(), inputs);
    for (const LayerLine& line : layers.lines) {
      ASSERT_EQ(line.points.size() % 2, 1u);
      EXPECT_EQ(line.points.front().y, areas[line.from].bottom);
      EXPECT_EQ(line.points.back().y, areas[line.to].top);
      for (size_t p = 0; p + 1 < line.points.size(); ++p) {
        const Point& begin = line.points[p];
        const Point& end = line.points[p + 1];
        EXPECT_LE(begin.y, end.y);
        if (p % 2 == 0) {
          EXPECT_EQ(begin.x, end.x);
        }
        for (const Area& area : areas) {
          const bool is_beside = std::max(begin.x, end.x) <= area.left + kRounding ||
                                 std::min(begin.x, end.x) >= area.right - kRounding;
          EXPECT_TRUE(end.y <= area.top || begin.y >= area.bottom || is_beside)
              << line.from << " to " << line.to;
        }
      }
    }
  }
}

TEST(PlaceInLayers, LeavesLongLinesOut) {
  const Layers layers = PlaceInLayers(ManyIntoOne(200));
  EXPECT_EQ(layers.lines.size(), 199 + kMostPassedLayers + 1);
}

}  // namespace
}  // namespace opmill
