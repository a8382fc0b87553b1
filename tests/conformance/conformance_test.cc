// Compares every operator, function and type with the reference.
//
//   conformance_test                             the named cases, and those of the tables that
//                                                together have every pair of macro values.
//                                                OPMILL_CONFORMANCE=3/16: those that use every
//                                                kernel, and one in 16 of the others, from number 3
//                                                on; OPMILL_CONFORMANCE=full: all
//   conformance_test --share 4                   of the systematic table, one in four cases
//   conformance_test --share 4 --only argmax     of those, the cases whose line contains this text
//   conformance_test --case '<line>'             one case, as printed by a failure
//   conformance_test --random 100000 --seed 7    this many random cases
//   conformance_test --device Hardware           instead of Software; see test_devices.h
//   conformance_test --device Cpu --instruction_set SSE4
//                                                with one of the processor's instruction sets
//   conformance_test --shader_cache <folder>     only the systematic table; fails if a kernel is
//                                                missing in the folder and is compiled
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif
#if OPMILL_CPU_DEVICE
#include "kernels/cpu/instruction_set.h"
#endif
#include "kernels/d3d12/d3d12_device.h"
#include "tests/conformance/case_generator.h"
#include "tests/conformance/conformance_case.h"
#include "tests/conformance/conformance_runner.h"
#include "tests/conformance/named_cases.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

struct Flags {
  std::string device = "Software";
  std::string line;
  uint64_t share = 1;
  std::string only;
  uint64_t random = 0;
  uint64_t seed = 1;
  std::string shader_cache;
  std::string instruction_set;
};

Flags& flags() {
  static Flags flags;
  return flags;
}

using Body = std::function<void(Device&)>;

class ConformanceTest : public ::testing::Test {
 public:
  ConformanceTest(std::string device, Body body)
      : device_name_(std::move(device)), body_(std::move(body)) {}

  void TestBody() override {
    const absl::StatusOr<Device*> device = OpenTestDevice(device_name_);
    if (device.ok()) {
      body_(**device);
    } else if (RequiresDevices()) {
      FAIL() << device.status();
    } else {
      GTEST_SKIP() << device.status();
    }
  }

 private:
  const std::string device_name_;
  const Body body_;
};

void Register(const std::string& name, const std::string& device, const Body& body) {
  ::testing::RegisterTest(
      "Conformance", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
      [device, body]() -> ::testing::Test* { return new ConformanceTest(device, body); });
}

ConformanceRunner RunnerOn(Device& device, KernelCover* cover = nullptr) {
  return ConformanceRunner(device, cover, CompilePlanForTest);
}

void RunLine(ConformanceRunner& runner, const std::string& line) {
  const absl::StatusOr<ConformanceCase> c = ParseLine(line);
  ASSERT_TRUE(c.ok()) << c.status() << " " << line;
  runner.Run(*c);
}

void RunOneLine(Device& device, const std::string& line) {
  ConformanceRunner runner = RunnerOn(device);
  RunLine(runner, line);
  runner.Finish();
}

// OPMILL_CONFORMANCE: all cases, or those that a cover chooses.
struct Extent {
  bool is_full = false;
  uint64_t share = 0;  // of KernelCover; 0: it covers pairs
  uint64_t first = 0;
};

// nullopt if the text is no extent.
std::optional<Extent> ParseExtent(absl::string_view text) {
  Extent extent;
  if (text.empty()) return extent;
  extent.is_full = text == "full";
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (extent.is_full ||
      (parts.size() == 2 && absl::SimpleAtoi(parts[0], &extent.first) &&
       absl::SimpleAtoi(parts[1], &extent.share) && extent.first < extent.share)) {
    return extent;
  }
  return std::nullopt;
}

Extent& extent() {
  static Extent extent;
  return extent;
}

// What chooses cases of the tables; null if all run. The tests of this process share it. The cpu
// device needs none: it compiles nothing, and all its cases take a minute.
KernelCover* Cover() {
  static KernelCover cover =
      extent().share == 0 ? KernelCover() : KernelCover(extent().share, extent().first);
  const bool is_part = flags().share > 1 || !flags().shader_cache.empty();
  return extent().is_full || is_part || flags().device == "Cpu" ? nullptr : &cover;
}

// One in `share` cases of the full table.
void RunShare(Device& device, const std::vector<DataType>& types, const PlanOptions& options,
              uint32_t share) {
  ConformanceRunner runner = RunnerOn(device);
  uint32_t turn = 0;
  for (const DataType type : types) {
    for (const ConformanceCase& c : SystematicCases(type, options)) {
      if (turn++ % share == 0) runner.Run(c);
    }
  }
  runner.Finish();
}

// One test per type, so that shards share no kernels.
void RegisterTypes(const char* prefix,
                   const std::function<void(ConformanceRunner&, Device&, DataType)>& body) {
  for (const DataType type : kAllDataTypes) {
    Register(absl::StrCat(prefix, ToString(type)), flags().device, [type, body](Device& device) {
      ConformanceRunner runner = RunnerOn(device, Cover());
      body(runner, device, type);
      runner.Finish();
    });
  }
}

void RunTable(ConformanceRunner& runner, Device& device, DataType type) {
  const Table table = flags().shader_cache.empty() ? Table::kFull : Table::kShort;
  uint64_t turn = 0;
  for (const ConformanceCase& c : SystematicCases(type, PlanOptionsForTest(device), table)) {
    if (!absl::StrContains(ToLine(c), flags().only)) continue;
    if (turn++ % flags().share == 0) runner.Run(c);
  }
}

// Ensures that the bytecode of another compiler was used, not the engine's own.
void RegisterNoCompilation() {
  Register("CompiledNothing", flags().device, [](Device& device) {
    EXPECT_GT(device.counters().pipelines_created, 0u);
    EXPECT_EQ(device.counters().shaders_compiled, 0u);
  });
}

// Transfers do not depend on the kernels, so a few cases suffice.
void RegisterCopies() {
  Register("OverCopies", "SoftwareCopies", [](Device& device) {
    RunShare(device, {DataType::kUint8, DataType::kFloat32}, PlanOptionsForTest(device), 61);
  });
}

// With as many groups as fill a large GPU.
void RegisterHardwareOptions() {
  Register("OptionsOfHardware", flags().device, [](Device& device) {
    RunShare(device, {DataType::kFloat32, DataType::kInt8}, PlanOptionsFor(), 47);
  });
}

// Seven runs of one operator, which share its dispatches, together with other runs.
void RunSevenTogether(ConformanceRunner& runner, ConformanceCase c) {
  std::vector<ConformanceCase> cases;
  for (; cases.size() < 7; ++c.seed) cases.push_back(c);
  runner.RunTogether(cases);
}

// Two inputs at different places in their views, by vectors and by elements.
constexpr const char* kAddTogether[] = {
    "element_wise_add a=INT16[2051] b=INT16[2051] output=INT16[2051]",
    "element_wise_add a=FLOAT32[37,64]/[1,0] b=FLOAT32[37,64] output=FLOAT32[37,64]/[80,1]",
    "element_wise_add a=UINT8[37,61] b=UINT8[37,61]/[1,37] output=UINT8[37,61]",
    "element_wise_add a=INT64[37,61]/[0,2] b=INT64[37,61] output=INT64[37,61]/[1,40]",
};

void RegisterTogether() {
  Register("Together", flags().device, [](Device& device) {
    const DeviceCounters before = device.counters();
    ConformanceRunner runner = RunnerOn(device);
    uint32_t turn = 0;
    for (const DataType type : {DataType::kFloat32, DataType::kInt8, DataType::kUint64}) {
      for (const ConformanceCase& c : SystematicCases(type, PlanOptionsForTest(device))) {
        if (turn++ % 173 == 0) RunSevenTogether(runner, c);
      }
    }
    for (const char* shapes : kAddTogether) {
      const absl::StatusOr<ConformanceCase> c = ParseLine(
          absl::StrCat(shapes, " values=random_bits seed=1 view=134217728 groups=64 threads=8"));
      ASSERT_TRUE(c.ok()) << c.status() << " " << shapes;
      RunSevenTogether(runner, *c);
    }
    runner.Finish();
    const DeviceCounters after = device.counters();
    EXPECT_LT(after.dispatches - before.dispatches, runner.planned_dispatches());
  });
}

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

void RunLongColumns(ConformanceRunner& runner, Device& /*device*/, DataType type) {
  uint64_t seed = 0;
  for (const char* shape : kLongColumns) {
    for (const ValuePattern values : kColumnValues) {
      const auto run = [&](const char* name, absl::string_view output, const char* rest) {
        RunLine(runner, absl::StrCat(name, " input=", ToString(type),
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

void RunTopKTiles(ConformanceRunner& runner, Device& /*device*/, DataType type) {
  uint64_t seed = 0;
  for (const TopKTileShape& shape : kTopKTileShapes) {
    for (const ValuePattern values : kTileValues) {
      for (const char* direction : {"INCREASING", "DECREASING"}) {
        RunLine(runner, absl::StrCat("top_k input=", ToString(type), shape.input,
                                     " output_values=", ToString(type), shape.output,
                                     " output_indices=UINT32", shape.output, shape.rest,
                                     " axis_direction=", direction, " values=", ToString(values),
                                     " seed=", ++seed, " view=134217728 groups=64 threads=8"));
      }
    }
  }
}

// Few to all results, with sequence lengths around those at which top_k changes its method, in rows
// that start within vectors, columns, and elements apart.
void RunTopKRanks(ConformanceRunner& runner, Device& /*device*/, DataType type) {
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
        RunLine(runner,
                absl::StrCat("top_k input=", ToString(type), shape(length),
                             " output_values=", ToString(type), shape(k), " output_indices=UINT32",
                             shape(k), " axis=", place.axis, " k=", k,
                             " axis_direction=", seed % 2 == 0 ? "INCREASING" : "DECREASING",
                             " values=", seed / 2 % 2 == 0 ? "ties" : "random_bits", " seed=", seed,
                             " view=134217728 groups=", seed / 4 % 2 == 0 ? 64 : 1, " threads=8"));
      }
    }
  }
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

void RunManyResults(ConformanceRunner& runner, Device& /*device*/, DataType type) {
  uint64_t seed = 0;
  for (const ResultShape& shape : kResultShapes) {
    for (const ValuePattern values : {ValuePattern::kTies, ValuePattern::kRandomBits}) {
      const auto run = [&](const char* name, absl::string_view output, const char* rest) {
        ++seed;
        RunLine(runner,
                absl::StrCat(name, " input=", ToString(type), shape.input, " output=", output,
                             " axes=", shape.axes, rest, " values=", ToString(values),
                             " seed=", seed, " view=", shape.view, " groups=2 threads=8"));
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
}

// Results of up to two rounds of items: vectors of rows, rows that start within them, elements
// apart, and columns within and across vectors.
void RunShortResults(ConformanceRunner& runner, Device& /*device*/, DataType type) {
  const uint32_t vector = 16 / ElementBytes(type);
  uint64_t seed = 0;
  const auto run = [&](const std::string& input, const std::string& output, int axis) {
    const auto run_one = [&](const char* name, absl::string_view output_type, const char* rest) {
      ++seed;
      RunLine(runner,
              absl::StrCat(name, " input=", ToString(type), input, " output=", output_type, output,
                           " axes=", axis, rest, " values=", seed % 2 == 0 ? "ties" : "random_bits",
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

void RunAdd(ConformanceRunner& runner, Device& /*device*/, DataType type) {
  uint64_t seed = 0;
  const auto run = [&](absl::string_view shape, ValuePattern values) {
    ++seed;
    for (const char* options : {"view=134217728 groups=64 threads=8", "view=512 groups=4 threads=8",
                                "view=134217728 groups=512 threads=256"}) {
      if (shape.find("70001") != shape.npos && options[5] == '5') continue;  // too many views
      RunLine(runner, absl::StrCat("element_wise_add ",
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
}

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

void RegisterSums() {
  Register("SumsThatRoundUp", flags().device, [](Device& device) {
    ConformanceRunner runner = RunnerOn(device);
    for (const char* shape : kSumShapes) {
      for (const char* options :
           {"groups=1 threads=8", "groups=64 threads=8", "groups=512 threads=256"}) {
        for (int seed = 0; seed < 20; ++seed) {
          RunLine(runner,
                  absl::StrCat("reduce function=SUM input=FLOAT32", shape,
                               " values=half_steps seed=", seed, " view=134217728 ", options));
        }
      }
    }
    runner.Finish();
  });
}

void RegisterRandom() {
  Register("Random", flags().device, [](Device& device) {
    ConformanceRunner runner = RunnerOn(device);
    for (uint64_t i = 0; i < flags().random; ++i) {
      runner.Run(RandomCase(flags().seed + i, PlanOptionsForTest(device)));
    }
    runner.Finish();
  });
}

void RegisterCases(absl::Span<const NamedCase> cases) {
  for (const NamedCase& c : cases) {
    Register(c.name, flags().device, [&c](Device& device) { RunOneLine(device, c.line); });
  }
}

// Removes "--name value" from the arguments that GoogleTest left.
bool ParseFlags(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--case") {
      flags().line = value;
    } else if (name == "--only") {
      flags().only = value;
    } else if (name == "--device") {
      flags().device = value;
    } else if (name == "--instruction_set") {
      flags().instruction_set = value;
    } else if (name == "--shader_cache") {
      flags().shader_cache = value;
    } else if (name == "--share" && absl::SimpleAtoi(value, &flags().share) && flags().share > 0) {
    } else if (name == "--random" && absl::SimpleAtoi(value, &flags().random)) {
    } else if (name == "--seed" && absl::SimpleAtoi(value, &flags().seed)) {
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

void RegisterTests() {
  if (!flags().line.empty()) {
    Register("Case", flags().device, [](Device& device) { RunOneLine(device, flags().line); });
  } else if (flags().random > 0) {
    RegisterRandom();
  } else if (!flags().shader_cache.empty()) {
    RegisterTypes("", RunTable);
    RegisterNoCompilation();
  } else if (flags().share > 1) {
    RegisterTypes("", RunTable);
  } else {
    RegisterTypes("", RunTable);
    if (flags().device != "Cpu") {  // it has no plan, adapter or dispatches
      RegisterHardwareOptions();
      RegisterCopies();
      RegisterTogether();
    }
    RegisterCases(Regressions());
    RegisterCases(SetsOfAxes());
    RegisterCases(Additions());
    RegisterCases(TopKPaths());
    RegisterTypes("LongColumnsOf", RunLongColumns);
    RegisterTypes("TopKTilesOf", RunTopKTiles);
    RegisterTypes("TopKRanksOf", RunTopKRanks);
    RegisterTypes("ManyResultsOf", RunManyResults);
    RegisterTypes("ShortResultsOf", RunShortResults);
    RegisterTypes("AddOf", RunAdd);
    RegisterSums();
  }
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!opmill::ParseFlags(argc, argv)) {
    std::cerr
        << "conformance_test takes --case '<line>', --share <number>, --only <text>, --random "
           "<count>, --seed <number>, --device <name>, --instruction_set <name> and --shader_cache "
           "<folder>.\n";
    return 2;
  }
  const char* const extent = std::getenv("OPMILL_CONFORMANCE");
  if (extent != nullptr) {
    const std::optional<opmill::Extent> parsed = opmill::ParseExtent(extent);
    if (!parsed.has_value()) {
      std::cerr
          << "OPMILL_CONFORMANCE is '" << extent
          << "'; it must be empty, full, or two numbers such as 3/16, the first of them smaller.\n";
      return 2;
    }
    opmill::extent() = *parsed;
  }
#if OPMILL_CPU_DEVICE
  if (!opmill::flags().instruction_set.empty()) {
    const absl::Status chosen = opmill::UseInstructionSetForTest(opmill::flags().instruction_set);
    if (!chosen.ok()) {
      std::cerr << chosen.message() << "\n";
      return 2;
    }
  }
#endif
#ifdef __GLIBC__
  // 19 kernels take 12 s instead of 17: the HLSL compiler frees many small blocks, which fast bins
  // keep apart until a large one is allocated.
  mallopt(M_MXFAST, 0);
  // Without its optimizer, Mesa's software driver takes a third off the time of all that. The few
  // cases of a kernel would gain less from it.
  if (opmill::Cover() != nullptr) setenv("GALLIVM_PERF", "nopt", /*overwrite=*/0);
#endif
  opmill::SetTestShaderCache(opmill::flags().shader_cache);
  opmill::RegisterTests();
  const int status = RUN_ALL_TESTS();
  std::cout << opmill::ConformanceRunner::cases_in_all() << " cases in all" << std::endl;
  return status;
}
