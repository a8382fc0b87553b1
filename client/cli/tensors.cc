// opmill tensors: puts, lists, reads and deletes tensors that stay on the server.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/connection_flags.h"
#include "client/cli/inputs.h"
#include "client/cli/jobs.h"
#include "client/cli/json.h"
#include "client/cli/output_plan.h"
#include "client/cli/run_report.h"
#include "client/cli/text_table.h"
#include "client/cli/verbs.h"
#include "client/names.h"
#include "kernels/base/errors.h"
#include "proto/duration.h"

namespace opmill {
namespace {

std::string ShapeText(const v1::TensorDesc& tensor) {
  return absl::StrCat(NameOf(tensor.data_type()), "[", absl::StrJoin(tensor.sizes(), ","), "]");
}

std::string LeaseText(const v1::ResidentTensor& tensor) {
  if (tensor.is_lost()) return "lost with the device";
  if (tensor.is_read_only()) return "a file of the server";
  if (!tensor.has_lease()) return "-";
  return absl::StrCat(DurationText(DecodeDuration(tensor.lease_left())), " of ",
                      DurationText(DecodeDuration(tensor.lease())));
}

std::string TensorsText(const v1::ListTensorsResponse& listed) {
  if (listed.tensors().empty()) return "The server has no tensors.\n";
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "type", "capacity", "memory", "generation", "lease"}};
  for (const v1::ResidentTensor& tensor : listed.tensors()) {
    rows.push_back({tensor.name(), ShapeText(tensor.tensor()), absl::StrCat(tensor.capacity_rows()),
                    BytesText(tensor.bytes()), absl::StrCat(tensor.generation()),
                    LeaseText(tensor)});
  }
  return TextTable(rows, /*align_right=*/false);
}

Computation Identity(const v1::TensorDesc& tensor) {
  v1::OperatorDesc desc;
  desc.mutable_named()->set_name("identity");
  *desc.mutable_named()->add_inputs() = tensor;
  return desc;
}

int List(Client& client, const CommandLine& line) {
  const absl::StatusOr<v1::ListTensorsResponse> listed = client.ListTensors();
  if (!listed.ok()) return Fail(listed.status());
  Print(line.Has("json") ? JsonOf(*listed) + "\n" : TensorsText(*listed));
  return kDone;
}

int Put(Client& client, const std::string& name, const std::string& file,
        const v1::ResidentOutput& to) {
  const absl::StatusOr<InputArray> array = OpenInput(file, v1::DATA_TYPE_UNSPECIFIED);
  if (!array.ok()) return Fail(array.status());
  const absl::StatusOr<InputBytes> bytes = array->load();
  if (!bytes.ok()) return Fail(bytes.status());
  ExecutionOptions options = {.resident_outputs = {to}};
  options.resident_outputs[0].set_name(name);
  MemorySink sink;
  const auto put = client.Execute(Identity(array->desc), *bytes, sink, options);
  if (!put.ok()) return Fail(put.status());
  Print(absl::StrCat(name, ": ", ShapeText(sink.outputs().front().desc), ", generation ",
                     put->generations(0), "\n"));
  return kDone;
}

int Get(Client& client, const CommandLine& line, const std::string& name) {
  absl::StatusOr<v1::ListTensorsResponse> found = client.ListTensors(name);
  if (!found.ok()) return Fail(found.status());
  v1::TensorDesc& tensor = *found->mutable_tensors(0)->mutable_tensor();
  const std::vector<Operands> results = {{{.name = name, .stem = name}}};
  OutputPlan plan(results);
  absl::StatusOr<std::vector<OutputTarget>> targets = plan.Add("output", line.Get("output"));
  if (!targets.ok()) return BadCommandLine(line, targets.status());
  if (const absl::Status writable = plan.Prepare(); !writable.ok()) return Fail(writable);
  v1::ResidentInput input;
  input.set_name(name);
  std::vector<Job> jobs(1);
  jobs[0].inputs.push_back({.name = name, .stem = name, .load = [] { return InputBytes(); }});
  jobs[0].computation = Identity(tensor);
  jobs[0].targets = *std::move(targets);
  RunReport report(line, /*has_many=*/false);
  RunJobs(client, {.resident_inputs = {input}}, jobs,
          [&](const Job& ended) { report.Finish(ended); });
  return report.Close();
}

// What --append, --write, --capacity, --lease and --if_generation say.
v1::ResidentOutput ReadWrite(FlagReader& flags) {
  const CommandLine& line = flags.line();
  v1::ResidentOutput to;
  to.set_kind(v1::ResidentOutput::KIND_PUT);
  if (line.Has("append")) to.set_kind(v1::ResidentOutput::KIND_APPEND);
  if (line.Has("first_row")) {
    if (line.Has("append")) flags.Fail("first_row", "It cannot be combined with --append.");
    to.set_kind(v1::ResidentOutput::KIND_WRITE);
    to.set_first_row(flags.Number("first_row", 0));
  }
  if (line.Has("capacity")) to.set_capacity_rows(flags.Number("capacity", 0));
  if (const std::optional<std::string> text = line.Get("if_generation")) {
    uint64_t generation = 0;
    if (!absl::SimpleAtoi(*text, &generation)) {
      flags.Fail("if_generation", absl::StrCat("\"", *text, "\" is not a number."));
    }
    to.set_if_generation(generation);
  }
  if (line.Has("lease")) {
    EncodeDuration(flags.Time("lease", absl::ZeroDuration()), *to.mutable_lease());
  }
  return to;
}

int Tensors(const CommandLine& line) {
  FlagReader flags(line);
  const std::vector<std::string>& words = line.arguments();
  const std::string action = words.empty() ? "list" : words[0];
  const size_t wanted = action == "put" ? 3 : action == "list" ? 1 : 2;
  if (action != "put" && action != "get" && action != "delete" && action != "list") {
    flags.FailPlain(absl::StrCat("\"", action, "\" is none of put, get, list and delete."));
  } else if (std::max<size_t>(words.size(), 1) != wanted) {
    flags.FailPlain(absl::StrCat("opmill tensors ", action, " takes ",
                                 action == "put"    ? "NAME and FILE"
                                 : action == "list" ? "nothing"
                                                    : "NAME",
                                 "."));
  }
  const v1::ResidentOutput to = ReadWrite(flags);
  RefuseJsonBesideResult(flags);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  if (action == "list") return List(*client, line);
  if (action == "put") return Put(*client, words[1], words[2], to);
  if (action == "get") return Get(*client, line, words[1]);
  const absl::Status deleted = client->DeleteTensor(
      words[1], to.has_if_generation() ? std::optional(to.if_generation()) : std::nullopt);
  return deleted.ok() ? kDone : Fail(deleted);
}

}  // namespace

const Verb& TensorsVerb() {
  static const Verb* const verb = new Verb{
      .name = "tensors",
      .arguments = "list|put|get|delete [NAME] [FILE...]",
      .argument_choices = {"list", "put", "get", "delete"},
      .summary = "lists, puts, reads and deletes tensors that stay on the server",
      .details =
          "FILE and --output are as for `opmill run`. A tensor is deleted by name, or when no "
          "call\n"
          "has named it for the time of its --lease.\n\n"
          "  opmill tensors put weights w.npy --lease 1h\n"
          "  opmill tensors put log first.npy --capacity 100000\n"
          "  opmill tensors put log more.npy --append\n"
          "  opmill tensors get log --output log.npy\n"
          "  opmill tensors delete log\n",
      .flags = WithCommonFlags(
          {{"append", "", "put: append the rows to a tensor that has room for them"},
           {"first_row", "ROW", "put: replace rows of a tensor, from this one on"},
           {"capacity", "ROWS", "put: how many rows the tensor may get (default: what FILE has)"},
           {"lease", "TIME", "put: how long it stays unused, such as 10m (default: for good)"},
           {"if_generation", "NUMBER",
            "put, delete: only if it has this generation; 0: if it is new"},
           {"output", "FILE", "get: where the tensor goes (default: the screen)"}}),
      .run = &Tensors};
  return *verb;
}

}  // namespace opmill
