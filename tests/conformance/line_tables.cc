#include "tests/conformance/line_tables.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/operator_schema.h"
#include "tests/conformance/values.h"

namespace opmill {
namespace {

// Columns with more rows than in the table, which lanes share, and groups; across vectors, along
// two dimensions, and rows that end within a round.
constexpr const char* kLongColumns[] = {
    "[2051,176] output={}[1,176] axes=0",   "[2051,300] output={}[1,300] axes=0",
    "[3,99,333] output={}[3,1,333] axes=1", "[9,2,13,160] output={}[1,2,1,160] axes=0,2",
    "[49,1027] output={}[1,1027] axes=0",
};
constexpr ValuePattern kColumnValues[] = {
    ValuePattern::kTies,     ValuePattern::kRandomBits,     ValuePattern::kSpecials,
    ValuePattern::kRareNans, ValuePattern::kRareInfinities,
};

std::vector<std::string> LongColumns(DataType type) {
  std::vector<std::string> lines;
  uint64_t seed = 0;
  for (const char* shape : kLongColumns) {
    for (const ValuePattern values : kColumnValues) {
      const auto run = [&](const char* name, absl::string_view output, const char* rest) {
        lines.push_back(absl::StrCat(name, " input=", ToString(type),
                                     absl::StrReplaceAll(shape, {{"{}", output}}), rest,
                                     " values=", ToString(values), " seed=", ++seed,
                                     " view=134217728 groups=64 threads=256"));
      };
      for (const char* name : {"argmin", "argmax"}) {
        run(name, "UINT32", " axis_direction=INCREASING");
        run(name, "INT64", " axis_direction=DECREASING");
      }
      run("reduce", ToString(type), " function=MIN");
      run("reduce", ToString(type), " function=MAX");
      if (!IsFloat(type)) continue;
      run("reduce", ToString(type), " function=SUM");
      run("reduce", ToString(type), " function=AVERAGE");
      run("reduce", ToString(type), " function=LOG_SUM_EXP");
    }
  }
  return lines;
}

constexpr ValuePattern kTileValues[] = {
    ValuePattern::kTies,           ValuePattern::kRandomBits, ValuePattern::kSpecials,
    ValuePattern::kZeros,          ValuePattern::kExtremes,   ValuePattern::kRareNans,
    ValuePattern::kAscending,      ValuePattern::kDescending, ValuePattern::kNegativeInfinity,
    ValuePattern::kRareInfinities,
};

// Columns of top_k, in many tiles, for elements of four, two and one bytes.
struct TopKTileShape {
  const char* input;
  const char* output;
  const char* rest;
};
constexpr TopKTileShape kTopKTileShapes[] = {
    {"[1000,176]", "[3,176]", " axis=0 k=3"},     {"[515,2,1104]", "[5,2,1104]", " axis=0 k=5"},
    {"[2,1035,336]", "[2,1,336]", " axis=1 k=1"}, {"[303,1024]", "[4,1024]", " axis=0 k=4"},
    {"[301,2048]", "[3,2048]", " axis=0 k=3"},
};

std::vector<std::string> TopKTiles(DataType type) {
  std::vector<std::string> lines;
  uint64_t seed = 0;
  for (const TopKTileShape& shape : kTopKTileShapes) {
    for (const ValuePattern values : kTileValues) {
      for (const char* direction : {"INCREASING", "DECREASING"}) {
        lines.push_back(absl::StrCat("top_k input=", ToString(type), shape.input,
                                     " output_values=", ToString(type), shape.output,
                                     " output_indices=UINT32", shape.output, shape.rest,
                                     " axis_direction=", direction, " values=", ToString(values),
                                     " seed=", ++seed, " view=134217728 groups=64 threads=8"));
      }
    }
  }
  return lines;
}

// Few to all results, with sequence lengths around those at which top_k changes its method, in rows
// that start within vectors, columns, and elements apart.
std::vector<std::string> TopKRanks(DataType type) {
  std::vector<std::string> lines;
  struct Place {
    const char* before;
    const char* after;
    int axis;
  };
  uint64_t seed = 0;
  for (const uint32_t length : {128u, 129u, 257u, 1024u, 1025u, 2100u}) {
    const uint32_t half = std::min(length / 2, 128u);
    for (const uint32_t k : {4u, 17u, 32u, 33u, half, length / 2 + 1, length}) {
      for (const Place& place : {Place{"3,", "", 1}, Place{"", ",32", 0}, Place{"", ",3", 0}}) {
        const auto shape = [&](uint32_t size) {
          return absl::StrCat("[", place.before, size, place.after, "]");
        };
        ++seed;
        lines.push_back(absl::StrCat(
            "top_k input=", ToString(type), shape(length), " output_values=", ToString(type),
            shape(k), " output_indices=UINT32", shape(k), " axis=", place.axis, " k=", k,
            " axis_direction=", seed % 2 == 0 ? "INCREASING" : "DECREASING",
            " values=", seed / 2 % 2 == 0 ? "ties" : "random_bits", " seed=", seed,
            " view=134217728 groups=", seed / 4 % 2 == 0 ? 64 : 1, " threads=8"));
      }
    }
  }
  return lines;
}

// Many results of few elements: rows that are vectors, rows that start within them, single elements
// of rows and columns, columns within and across vectors, combined records, and more results than
// one view can hold.
struct ResultShape {
  const char* input;
  const char* output;
  const char* axes;
  int view;
};
constexpr ResultShape kResultShapes[] = {
    {"[2051,4]", "[2051,1]", "1", 134217728},
    {"[2051,3]", "[2051,1]", "1", 134217728},
    {"[37,5,9,7]/[315,63,7,1]", "[37,1,9,1]", "1,3", 134217728},
    {"[517,5]/[32,2]", "[517,1]", "1", 134217728},
    {"[5,517]/[2048,2]", "[1,517]", "0", 134217728},
    {"[3,1040]", "[1,1040]", "0", 134217728},
    {"[61,4,21]", "[61,1,21]", "1", 134217728},
    {"[1100,40]/[128,2]", "[1,40]", "0", 134217728},
    {"[5003,2]", "[5003,1]", "1", 1024},
};

std::vector<std::string> ManyResults(DataType type) {
  std::vector<std::string> lines;
  uint64_t seed = 0;
  for (const ResultShape& shape : kResultShapes) {
    for (const ValuePattern values : {ValuePattern::kTies, ValuePattern::kRandomBits}) {
      const auto run = [&](const char* name, absl::string_view output, const char* rest) {
        ++seed;
        lines.push_back(absl::StrCat(name, " input=", ToString(type), shape.input,
                                     " output=", output, " axes=", shape.axes, rest,
                                     " values=", ToString(values), " seed=", seed,
                                     " view=", shape.view, " groups=2 threads=8"));
      };
      run("argmin", absl::StrCat("UINT32", shape.output), " axis_direction=INCREASING");
      run("argmax", absl::StrCat("INT64", shape.output), " axis_direction=DECREASING");
      const std::string output = absl::StrCat(ToString(type), shape.output);
      run("reduce", output, " function=MAX");
      if (IsFloat(type) || ElementBytes(type) >= 4) run("reduce", output, " function=SUM");
      if (!IsFloat(type)) continue;
      run("reduce", output, " function=LOG_SUM_EXP");
      const std::string whole = shape.input;
      run("hardmax", absl::StrCat(ToString(type), whole.substr(0, whole.find('/'))), "");
    }
  }
  return lines;
}

// Results of up to two rounds of items: vectors of rows, rows that start within them, elements
// apart, and columns within and across vectors.
std::vector<std::string> ShortResults(DataType type) {
  std::vector<std::string> lines;
  const uint32_t vector = 16 / ElementBytes(type);
  uint64_t seed = 0;
  const auto run = [&](const std::string& input, const std::string& output, int axis) {
    const auto run_one = [&](const char* name, absl::string_view output_type, const char* rest) {
      ++seed;
      lines.push_back(absl::StrCat(name, " input=", ToString(type), input, " output=", output_type,
                                   output, " axes=", axis, rest,
                                   " values=", seed % 2 == 0 ? "ties" : "random_bits",
                                   " seed=", seed, " view=134217728 groups=2 threads=8"));
    };
    run_one("argmax", "UINT32", " axis_direction=DECREASING");
    run_one("reduce", ToString(type), " function=MIN");
    if (IsFloat(type) || vector <= 4) run_one("reduce", ToString(type), " function=SUM");
    if (IsFloat(type)) run_one("reduce", ToString(type), " function=LOG_SUM_EXP");
  };
  for (uint32_t items = 1; items <= 8; ++items) {
    const bool is_wide = vector == 2;
    const bool is_aligned = items == 1 || items == 2 || items == 4 || items == 7;
    // Rows that start within vectors touch one more than they fill; rows of two elements do not.
    const uint32_t within = (items - (is_wide ? 0 : 1)) * vector - 1;
    if (is_aligned || is_wide) run(absl::StrCat("[131,", items * vector, "]"), "[131,1]", 1);
    if (!is_aligned || is_wide) run(absl::StrCat("[131,", within, "]"), "[131,1]", 1);
    if (items != 3 && items != 5 && items != 8) continue;
    run(absl::StrCat("[131,", items, "]/[", 2 * items + 1, ",2]"), "[131,1]", 1);
    run(absl::StrCat("[", items, ",1040]"), "[1,1040]", 0);
    run(absl::StrCat("[3,", items, ",401]"), "[3,1,401]", 1);
  }
  return lines;
}

// element_wise_add by vectors and by elements: rows around the ends of vectors, inputs that repeat
// an element along rows or repeat rows, rows that start within vectors, outputs with gaps, elements
// apart, and tensors sliced into views. {} stands for the type.
constexpr const char* kAddShapes[] = {
    "a={}[7,64] b={}[7,64]/[0,1] output={}[7,64]",
    "a={}[7,64]/[1,0] b={}[7,64] output={}[7,64]",
    "a={}[7,64] b={}[7,64]/[3,0] output={}[7,64]",
    "a={}[7,64]/[5,0] b={}[7,64]/[0,0] output={}[7,64]",
    "a={}[7,61] b={}[7,61]/[0,1] output={}[7,61]",
    "a={}[7,61]/[64,1] b={}[7,61]/[80,1] output={}[7,61]/[96,1]",
    "a={}[7,61]/[1,7] b={}[7,61] output={}[7,61]",
    "a={}[7,61] b={}[7,61] output={}[7,61]/[1,9]",
    "a={}[7,61]/[200,3] b={}[7,61] output={}[7,61]/[130,2]",
    "a={}[3,5,2,16,4]/[640,128,0,4,1] b={}[3,5,2,16,4]/[0,64,0,4,1] output={}[3,5,2,16,4]",
    "a={}[2,3,1,2,1,3,2,5]/[1,1,1,1,1,1,1,1] b={}[2,3,1,2,1,3,2,5] output={}[2,3,1,2,1,3,2,5]",
    "a={}[40009] b={}[40009] output={}[40009]",
    "a={}[3,70001]/[70016,1] b={}[3,70001]/[1,0] output={}[3,70001]/[80000,1]",
};

std::vector<std::string> Add(DataType type) {
  std::vector<std::string> lines;
  uint64_t seed = 0;
  const auto run = [&](absl::string_view shape, ValuePattern values) {
    ++seed;
    for (const char* options : {"view=134217728 groups=64 threads=8", "view=512 groups=4 threads=8",
                                "view=134217728 groups=512 threads=256"}) {
      if (shape.find("70001") != shape.npos && options[5] == '5') continue;  // too many views
      lines.push_back(absl::StrCat("element_wise_add ",
                                   absl::StrReplaceAll(shape, {{"{}", ToString(type)}}),
                                   " values=", ToString(values), " seed=", seed, " ", options));
    }
  };
  for (uint32_t length = 1; length <= 35; ++length) {
    run(absl::StrCat("a={}[", length, "] b={}[", length, "] output={}[", length, "]"),
        ValuePattern::kRandomBits);
  }
  for (const char* shape : kAddShapes) {
    for (uint32_t v = 0; v < kValuePatternCount; ++v) run(shape, static_cast<ValuePattern>(v));
  }
  return lines;
}

constexpr LineTable kLineTables[] = {
    {"LongColumns", LongColumns}, {"TopKTiles", TopKTiles},       {"TopKRanks", TopKRanks},
    {"ManyResults", ManyResults}, {"ShortResults", ShortResults}, {"Add", Add},
};

// Two inputs at different places in their views, by vectors and by elements.
constexpr const char* kAddTogether[] = {
    "element_wise_add a=INT16[2051] b=INT16[2051] output=INT16[2051]",
    "element_wise_add a=FLOAT32[37,64]/[1,0] b=FLOAT32[37,64] output=FLOAT32[37,64]/[80,1]",
    "element_wise_add a=UINT8[37,61] b=UINT8[37,61]/[1,37] output=UINT8[37,61]",
    "element_wise_add a=INT64[37,61]/[0,2] b=INT64[37,61] output=INT64[37,61]/[1,40]",
};

// Sums of a large number and small ones, each of which, or each few of which, adds the maximal
// error: if these are within the bound, all sums are. With few and with many lanes in a group.
constexpr const char* kSumShapes[] = {
    "[16,512] output=FLOAT32[16,1] axes=1",          "[16,515] output=FLOAT32[16,1] axes=1",
    "[16,4096] output=FLOAT32[16,1] axes=1",         "[16,8192] output=FLOAT32[16,1] axes=1",
    "[16,512]/[1024,2] output=FLOAT32[16,1] axes=1", "[1,70001] output=FLOAT32[1,1] axes=1",
    "[1,262144] output=FLOAT32[1,1] axes=1",         "[256,32] output=FLOAT32[1,32] axes=0",
    "[256,31] output=FLOAT32[1,31] axes=0",          "[512,32] output=FLOAT32[1,32] axes=0",
    "[512,4]/[9,2] output=FLOAT32[1,4] axes=0",      "[8192,32] output=FLOAT32[1,32] axes=0",
    "[256,64] output=FLOAT32[1,64] axes=0",          "[4096,64] output=FLOAT32[1,64] axes=0",
    "[3,1024,65] output=FLOAT32[3,1,65] axes=1",
};

}  // namespace

absl::Span<const LineTable> LineTables() { return kLineTables; }

std::vector<std::string> SumsThatRoundUp() {
  std::vector<std::string> lines;
  for (const char* shape : kSumShapes) {
    for (const char* options :
         {"groups=1 threads=8", "groups=64 threads=8", "groups=512 threads=256"}) {
      for (int seed = 0; seed < 20; ++seed) {
        lines.push_back(absl::StrCat("reduce function=SUM input=FLOAT32", shape,
                                     " values=half_steps seed=", seed, " view=134217728 ",
                                     options));
      }
    }
  }
  return lines;
}

std::vector<std::string> AddTogether() {
  std::vector<std::string> lines;
  for (const char* shapes : kAddTogether) {
    lines.push_back(
        absl::StrCat(shapes, " values=random_bits seed=1 view=134217728 groups=64 threads=8"));
  }
  return lines;
}

}  // namespace opmill
