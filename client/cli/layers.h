// Places the boxes of a graph in layers, from top to bottom: a pure function.
#ifndef OPMILL_CLIENT_CLI_LAYERS_H_
#define OPMILL_CLIENT_CLI_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opmill {

struct LayerBox {
  double width = 0;
  double height = 0;
  std::vector<uint32_t> inputs;  // earlier boxes
};

struct Point {
  double x = 0;
  double y = 0;
};

// A line from the bottom of a box to the top of another. It goes straight down from points[0] to
// points[1], through a layer, to one side or the other to points[2], between two layers, and so on.
struct LayerLine {
  uint32_t from = 0;
  uint32_t to = 0;
  std::vector<Point> points;
};

struct Layers {
  std::vector<Point> boxes;  // their upper left corners
  std::vector<LayerLine> lines;
  double width = 0;
  double height = 0;
};

// Lines that would pass more layers are left out.
inline constexpr size_t kMostPassedLayers = 64;

// Boxes do not overlap, and no line crosses a box. A box is in the layer after the last of those
// that it reads.
Layers PlaceInLayers(const std::vector<LayerBox>& boxes);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_LAYERS_H_
