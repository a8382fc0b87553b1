// onnx_inspect MODEL [NAME=SIZES | NAME:=INTEGER | --write=FILE]...: what each pass makes of a
// model. Sizes are those of an input ("x=1,3,224,224"), an integer is its value ("sr:=16000"). FILE
// gets the specialized model.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/onnx/read_model.h"
#include "kernels/onnx/specialize.h"
#include "kernels/operators/elementwise/fuse_chains.h"
#include "tests/onnx/model_arguments.h"
#include "tests/onnx/write_model.h"

namespace opmill::onnx {
namespace {

[[noreturn]] void Fail(absl::string_view text) {
  std::cerr << text << "\n";
  std::exit(1);
}

size_t Print(absl::string_view pass, const std::vector<Node>& nodes) {
  size_t total = 0;
  std::string text;
  for (const auto& [op, count] : CountOperators(nodes)) {
    absl::StrAppend(&text, " ", op, " ", count);
    total += count;
  }
  std::cout << pass << " " << total << ":" << text << "\n";
  return total;
}

int Main(int argc, char** argv) {
  if (argc < 2) Fail("onnx_inspect MODEL [NAME=SIZES | NAME:=INTEGER | --write=FILE]...");
  const absl::string_view last = argv[argc - 1];
  const std::string file(absl::StartsWith(last, "--write=") ? last.substr(8) : "");
  if (!file.empty()) --argc;
  const absl::StatusOr<Graph> graph = ReadModelFile(argv[1]);
  if (!graph.ok()) Fail(graph.status().message());
  Print("read", graph->nodes);
  for (const std::string& name : FormInputs(*graph)) std::cout << "form " << name << "\n";
  const absl::StatusOr<InputBindings> bindings =
      ParseBindings(*graph, absl::MakeConstSpan(argv + 2, argv + argc));
  if (!bindings.ok()) Fail(bindings.status().message());
  const absl::StatusOr<Graph> specialized = Specialize(*graph, *bindings);
  if (!specialized.ok()) Fail(specialized.status().message());
  Print("specialized", specialized->nodes);
  for (const Output& output : specialized->outputs) {
    std::cout << "output " << output.name << " " << ToString(specialized->values[output.value].type)
              << "\n";
  }
  if (!file.empty()) std::ofstream(file, std::ios::binary) << WriteModel(*specialized);
  const absl::StatusOr<LoweredGraph> lowered = LowerGraph(*specialized);
  if (lowered.ok()) {
    std::cout << "operators " << lowered->program.nodes.size() << "\n"
              << "chains " << FuseChains(lowered->program).nodes.size() << "\n";
  } else {
    std::cout << "refused " << lowered.status().message() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace opmill::onnx

int main(int argc, char** argv) { return opmill::onnx::Main(argc, argv); }
