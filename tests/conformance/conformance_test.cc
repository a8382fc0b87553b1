// Compares every operator, function and type with the reference.
//
//   conformance_test                             the named cases, and those that a cover chooses
//                                                from the tables (case_cover.h).
//                                                OPMILL_CONFORMANCE=3/16: a cover that needs one in
//                                                16 of the pairs, from number 3 on, and one in 16
//                                                of the other cases that use its kernels; with
//                                                --device Cpu one in four cases of the tables;
//                                                OPMILL_CONFORMANCE=full: all
//   conformance_test --share 4                   of the systematic table, one in four cases
//   conformance_test --share 4 --only argmax     of those, the cases whose line contains this text
//   conformance_test --case '<line>'             one case, as printed by a failure
//   conformance_test --random 100000 --seed 7    this many random cases
//   conformance_test --device Hardware           instead of Software; see test_devices.h
//   conformance_test --device Cpu --instruction_set SSE4
//                                                with one of the processor's instruction sets
//   conformance_test --shader_cache <folder>     of the systematic table, the cases that use only
//                                                kernels of its cover; fails if a kernel is missing
//                                                in the folder and is compiled
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
#include "tests/conformance/case_cover.h"
#include "tests/conformance/case_generator.h"
#include "tests/conformance/conformance_case.h"
#include "tests/conformance/conformance_runner.h"
#include "tests/conformance/line_tables.h"
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

// OPMILL_CONFORMANCE: all cases, or those that a cover chooses.
struct Extent {
  bool is_full = false;
  std::optional<Slice> slice;
};

// nullopt if the text is no extent.
std::optional<Extent> ParseExtent(absl::string_view text) {
  Extent extent;
  if (text.empty()) return extent;
  extent.is_full = text == "full";
  if (extent.is_full) return extent;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  Slice& slice = extent.slice.emplace();
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &slice.first) &&
      absl::SimpleAtoi(parts[1], &slice.share) && slice.first < slice.share) {
    return extent;
  }
  return std::nullopt;
}

Extent& extent() {
  static Extent extent;
  return extent;
}

// The cases of one test.
struct Group {
  std::string name;
  std::string kind;  // as in CaseSet
  std::string device;
  std::function<std::vector<ConformanceCase>(const PlanOptions& own)> make;
  bool is_whole = false;  // in a sample too
};

// Of the tests that a sample is chosen from. Complete before the first of them runs.
std::vector<Group>& groups() {
  static std::vector<Group> groups;
  return groups;
}

// The cpu device needs no cover: it compiles nothing, and all its cases take two minutes.
bool IsSample() {
  return !extent().is_full && flags().share == 1 && flags().shader_cache.empty() &&
         flags().device != "Cpu";
}

std::vector<ConformanceCase> MakeCases(const Group& group) {
  const absl::StatusOr<Device*> device = OpenTestDevice(group.device);
  if (!device.ok()) return {};  // the test skips or fails
  return group.make(PlanOptionsForTest(**device));
}

// Per group. The cover is one for all groups, so that they share kernels.
std::vector<std::vector<ConformanceCase>> ChooseSample() {
  std::vector<CaseSet> sets;
  for (const Group& g : groups()) sets.push_back({g.kind, g.device, MakeCases(g), g.is_whole});
  const std::optional<Slice>& slice = extent().slice;
  const CaseCover cover(sets, slice.value_or(Slice()));
  std::vector<std::vector<ConformanceCase>> sample(sets.size());
  uint64_t turn = 0;
  for (size_t s = 0; s < sets.size(); ++s) {
    for (size_t i = 0; i < sets[s].cases.size(); ++i) {
      ConformanceCase& c = sets[s].cases[i];
      const bool is_chosen =
          cover.Chooses(s, i) || (slice && slice->Has(turn++) && cover.HasKernelsOf(c));
      if (is_chosen) sample[s].push_back(std::move(c));
    }
  }
  return sample;
}

// Of the systematic table, every case whose kernels the cover has, and of these one in `share`.
std::vector<ConformanceCase> CasesOfCoveredKernels(const Group& group) {
  static const CaseCover* const cover = [] {
    const absl::StatusOr<Device*> device = OpenTestDevice(flags().device);
    const PlanOptions own = device.ok() ? PlanOptionsForTest(**device) : PlanOptions();
    return new CaseCover(SystematicSets(flags().device, own));
  }();
  std::vector<ConformanceCase> cases = MakeCases(group);
  std::erase_if(cases, [](const ConformanceCase& c) { return !cover->HasKernelsOf(c); });
  return cases;
}

std::vector<ConformanceCase> CasesOf(size_t number) {
  const Group& group = groups()[number];
  if (IsSample()) {
    static const auto* const sample = new auto(ChooseSample());
    return (*sample)[number];
  }
  std::vector<ConformanceCase> cases =
      flags().shader_cache.empty() ? MakeCases(group) : CasesOfCoveredKernels(group);
  std::erase_if(
      cases, [](const ConformanceCase& c) { return !absl::StrContains(ToLine(c), flags().only); });
  Slice part = {.share = flags().share};
  const bool is_chosen_by_flags = flags().share != 1 || !flags().only.empty();
  if (extent().slice && !is_chosen_by_flags && !group.is_whole) {
    part = {.share = 4, .first = extent().slice->first % 4};
  }
  uint64_t turn = 0;
  std::erase_if(cases, [&](const ConformanceCase&) { return !part.Has(turn++); });
  return cases;
}

void RunEach(Device& device, const std::vector<ConformanceCase>& cases) {
  ConformanceRunner runner(device, CompilePlanForTest);
  for (const ConformanceCase& c : cases) runner.Run(c);
  runner.Finish();
}

// Seven runs of each operator, which share its dispatches, together with other runs.
void RunSevenOfEach(Device& device, const std::vector<ConformanceCase>& cases) {
  const DeviceCounters before = device.counters();
  ConformanceRunner runner(device, CompilePlanForTest);
  for (ConformanceCase c : cases) {
    std::vector<ConformanceCase> seven;
    for (; seven.size() < 7; ++c.seed) seven.push_back(c);
    runner.RunTogether(seven);
  }
  runner.Finish();
  const DeviceCounters after = device.counters();
  EXPECT_LT(after.dispatches - before.dispatches, runner.planned_dispatches());
}

void RegisterGroup(Group group,
                   void (*run)(Device&, const std::vector<ConformanceCase>&) = RunEach) {
  const size_t number = groups().size();
  Register(group.name, group.device,
           [number, run](Device& device) { run(device, CasesOf(number)); });
  groups().push_back(std::move(group));
}

std::vector<ConformanceCase> ParseLines(const std::vector<std::string>& lines) {
  std::vector<ConformanceCase> cases;
  for (const std::string& line : lines) {
    const absl::StatusOr<ConformanceCase> c = ParseLine(line);
    if (c.ok()) {
      cases.push_back(*c);
    } else {
      ADD_FAILURE() << c.status() << " " << line;
    }
  }
  return cases;
}

// One test per type, so that shards share no kernels.
void RegisterSystematicTable() {
  for (const DataType type : kAllDataTypes) {
    const std::string name(ToString(type));
    RegisterGroup({name, name, flags().device,
                   [type](const PlanOptions& own) { return SystematicCases(type, own); }});
  }
}

void RegisterLineTables() {
  for (const LineTable& table : LineTables()) {
    for (const DataType type : kAllDataTypes) {
      RegisterGroup({absl::StrCat(table.name, "Of", ToString(type)), table.name, flags().device,
                     [&table, type](const PlanOptions&) { return ParseLines(table.lines(type)); }});
    }
  }
  RegisterGroup({"SumsThatRoundUp", "", flags().device,
                 [](const PlanOptions&) { return ParseLines(SumsThatRoundUp()); },
                 /*is_whole=*/true});
}

void RegisterCases(absl::Span<const NamedCase> cases) {
  for (const NamedCase& c : cases) {
    RegisterGroup({c.name, "", flags().device,
                   [&c](const PlanOptions&) { return ParseLines({c.line}); }, /*is_whole=*/true});
  }
}

// Their kernels take as long to compile as all others that are named. A slice of the cover has
// some.
void RegisterTopKPaths() {
  if (!IsSample() || !extent().slice) {
    RegisterCases(TopKPaths());
    return;
  }
  RegisterGroup({"TopKPaths", "TopKPaths", flags().device, [](const PlanOptions&) {
                   std::vector<std::string> lines;
                   for (const NamedCase& c : TopKPaths()) lines.push_back(c.line);
                   return ParseLines(lines);
                 }});
}

// One in `share` cases of the systematic table.
std::vector<ConformanceCase> ShareOf(const std::vector<DataType>& types, const PlanOptions& options,
                                     uint32_t share) {
  std::vector<ConformanceCase> cases;
  uint32_t turn = 0;
  for (const DataType type : types) {
    for (ConformanceCase& c : SystematicCases(type, options)) {
      if (turn++ % share == 0) cases.push_back(std::move(c));
    }
  }
  return cases;
}

void RegisterOtherWaysToRun() {
  // With as many groups as fill a large GPU.
  RegisterGroup({"OptionsOfHardware", "OptionsOfHardware", flags().device, [](const PlanOptions&) {
                   return ShareOf({DataType::kFloat32, DataType::kInt8}, PlanOptionsFor(), 47);
                 }});
  // Transfers do not depend on the kernels, so a few cases suffice.
  RegisterGroup({"OverCopies", "OverCopies", "SoftwareCopies", [](const PlanOptions& own) {
                   return ShareOf({DataType::kUint8, DataType::kFloat32}, own, 61);
                 }});
  RegisterGroup({"Together", "Together", flags().device,
                 [](const PlanOptions& own) {
                   std::vector<ConformanceCase> cases =
                       ShareOf({DataType::kFloat32, DataType::kInt8, DataType::kUint64}, own, 173);
                   for (ConformanceCase& c : ParseLines(AddTogether())) cases.push_back(c);
                   return cases;
                 }},
                RunSevenOfEach);
}

// Ensures that the bytecode of another compiler was used, not the engine's own.
void RegisterNoCompilation() {
  Register("CompiledNothing", flags().device, [](Device& device) {
    EXPECT_GT(device.counters().pipelines_created, 0u);
    EXPECT_EQ(device.counters().shaders_compiled, 0u);
  });
}

void RegisterRandom() {
  Register("Random", flags().device, [](Device& device) {
    ConformanceRunner runner(device, CompilePlanForTest);
    for (uint64_t i = 0; i < flags().random; ++i) {
      runner.Run(RandomCase(flags().seed + i, PlanOptionsForTest(device)));
    }
    runner.Finish();
  });
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
    Register("Case", flags().device,
             [](Device& device) { RunEach(device, ParseLines({flags().line})); });
  } else if (flags().random > 0) {
    RegisterRandom();
  } else if (!flags().shader_cache.empty()) {
    RegisterSystematicTable();
    RegisterNoCompilation();
  } else if (flags().share > 1) {
    RegisterSystematicTable();
  } else {
    RegisterSystematicTable();
    if (flags().device != "Cpu") RegisterOtherWaysToRun();  // it has no plan, adapter or dispatches
    RegisterCases(Regressions());
    RegisterCases(SetsOfAxes());
    RegisterCases(Additions());
    RegisterTopKPaths();
    RegisterLineTables();
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
  if (opmill::IsSample()) setenv("GALLIVM_PERF", "nopt", /*overwrite=*/0);
#endif
  opmill::SetTestShaderCache(opmill::flags().shader_cache);
  opmill::RegisterTests();
  const int status = RUN_ALL_TESTS();
  std::cout << opmill::ConformanceRunner::cases_in_all() << " cases in all" << std::endl;
  return status;
}
