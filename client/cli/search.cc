// opmill search: the nearest of the vectors in a tensor that stays on the server.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/connection_flags.h"
#include "client/cli/inputs.h"
#include "client/cli/jobs.h"
#include "client/cli/operator_flags.h"
#include "client/cli/output_plan.h"
#include "client/cli/run_report.h"
#include "client/cli/verbs.h"
#include "client/encode_operator.h"
#include "kernels/base/errors.h"
#include "kernels/operators/search/search_desc.h"

namespace opmill {
namespace {

// The position of the vectors among the inputs of the operator.
constexpr uint32_t kVectors = 1;

const AttributeSchema& MetricAttribute() {
  return kSearchSchema.attributes[kSearchSchema.AttributeIndex("metric")];
}

Flag MetricFlag() {
  const AttributeSchema& metric = MetricAttribute();
  const std::string default_name = absl::AsciiStrToLower(metric.default_text);
  return {.name = FlagOf(metric),
          .value = "NAME",
          .help = absl::StrCat("which vectors are near: ", ChoiceList(metric),
                               "; l2 is the squared distance (default: ", default_name, ")"),
          .choices = ChoiceNames(metric)};
}

// One row of an array without a dimension of rows.
void MakeMatrix(v1::TensorDesc& desc) {
  if (desc.sizes_size() != 1) return;
  const uint32_t columns = desc.sizes(0);
  desc.clear_sizes();
  desc.add_sizes(1);
  desc.add_sizes(columns);
}

// The inputs in the order of the operator.
absl::StatusOr<Operands> OpenOperands(const CommandLine& line, const std::string& name,
                                      const v1::TensorDesc& vectors) {
  ASSIGN_OR_RETURN(InputArray queries, OpenInput(*line.Get("queries"), vectors.data_type()));
  Operands operands;
  operands.push_back(std::move(queries));
  operands.push_back({.name = name, .desc = vectors, .load = [] { return InputBytes(); }});
  if (const std::optional<std::string> file = line.Get("mask")) {
    ASSIGN_OR_RETURN(InputArray mask, OpenInput(*file, v1::DATA_TYPE_UINT8));
    operands.push_back(std::move(mask));
    MakeMatrix(operands.back().desc);
  }
  MakeMatrix(operands.front().desc);
  return operands;
}

Computation SearchIn(const Operands& operands, uint32_t k, uint32_t metric) {
  OperatorDesc desc = {.schema = &kSearchSchema};
  for (const InputArray& each : operands) desc.inputs.push_back(TensorDescOf(each.desc));
  desc.outputs.resize(2);
  desc.attributes = {k, metric};
  return EncodeOperator(desc);
}

int Search(const CommandLine& line) {
  FlagReader flags(line);
  const std::vector<std::string>& words = line.arguments();
  if (words.size() != 1) flags.FailPlain("opmill search takes the NAME of a tensor.");
  flags.Required("queries");
  const uint32_t k = flags.RequiredNumber("k");
  const uint32_t metric = ReadChoice(kSearchSchema, MetricAttribute(), flags);
  RefuseJsonBesideResult(flags);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<v1::ListTensorsResponse> found = client->ListTensors(words[0]);
  if (!found.ok()) return Fail(found.status());
  std::vector<Job> jobs(1);
  absl::StatusOr<Operands> operands = OpenOperands(line, words[0], found->tensors(0).tensor());
  if (!operands.ok()) return Fail(operands.status());
  const std::vector<Operands> results = {
      {{.name = operands->front().name, .stem = operands->front().stem}}};
  OutputPlan plan(results);
  for (const char* const flag : {"output", "indices"}) {
    const absl::StatusOr<std::vector<OutputTarget>> planned = plan.Add(flag, line.Get(flag));
    if (!planned.ok()) return BadCommandLine(line, planned.status());
    jobs[0].targets.push_back(planned->front());
  }
  if (const absl::Status writable = plan.Prepare(); !writable.ok()) return Fail(writable);
  jobs[0].computation = SearchIn(*operands, k, metric);
  jobs[0].inputs = *std::move(operands);
  v1::ResidentInput vectors;
  vectors.set_input(kVectors);
  vectors.set_name(words[0]);
  RunReport report(line, /*has_many=*/false);
  RunJobs(*client, {.resident_inputs = {vectors}}, jobs,
          [&](const Job& ended) { report.Finish(ended); });
  return report.Close();
}

}  // namespace

const Verb& SearchVerb() {
  static const Verb* const verb = new Verb{
      .name = "search",
      .arguments = "NAME",
      .summary = "finds the nearest vectors in a tensor that stays on the server",
      .details =
          "NAME is a tensor whose rows are vectors. Each row of --queries is searched for; the\n"
          "queries are converted to the type of the tensor. The results are the scores (--output)\n"
          "and the rows of the vectors (--indices), the best first, as for `opmill run`.\n\n"
          "  opmill tensors put documents vectors.npy\n"
          "  opmill search documents --queries q.npy --k 10\n"
          "  opmill search documents --queries q.npy --k 10 --metric cosine \\\n"
          "    --mask allowed.npy --output scores.npy --indices rows.npy\n",
      .flags = WithCommonFlags(
          {{"queries", "FILE", "the vectors to search for, one or rows of them"},
           {"k", "NUMBER", "how many vectors are found for each"},
           MetricFlag(),
           {"mask", "FILE", "bool or uint8: which rows of the tensor can be found"},
           {"output", "FILE", "where the scores are written (default: the screen)"},
           {"indices", "FILE", "where the rows are written (default: the screen)"}}),
      .run = &Search};
  return *verb;
}

}  // namespace opmill
