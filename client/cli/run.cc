// opmill run: one operator on a .npy file.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/common.h"
#include "client/cli/operator_flags.h"
#include "client/cli/progress.h"
#include "client/cli/result_sink.h"
#include "client/cli/verbs.h"
#include "client/mapped_file.h"
#include "client/npy.h"
#include "client/npy_writer.h"

namespace opmill {
namespace {

absl::Status AboutFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

struct Input {
  v1::TensorDesc desc;
  InputBytes bytes;  // inside the mapped file
};

absl::StatusOr<Input> OpenInput(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader((*file)->bytes());
  if (!header.ok()) return AboutFile(path, header.status());
  absl::StatusOr<v1::TensorDesc> desc = header->ToTensorDesc();
  if (!desc.ok()) return AboutFile(path, desc.status());
  const std::byte* data = (*file)->bytes().data() + header->data_offset;
  return Input{*std::move(desc), {data, header->data_bytes, *std::move(file)}};
}

int Run(const CommandLine& line) {
  FlagReader flags(line);
  const std::string op = line.argument().value_or("");
  CheckOperatorName(op, flags);
  const std::string path = flags.Required("input");
  if (!flags.status().ok()) return BadCommandLine(line, flags.status());
  absl::StatusOr<Input> input = OpenInput(path);
  if (!input.ok()) return Fail(input.status());

  const v1::OperatorDesc desc = ReadOperator(op, input->desc, flags);
  ExecutionOptions options;
  options.feature_level = ReadFeatureLevel(flags);
  if (line.Has("indices") && op != "top_k") flags.Fail("indices", "Only top_k has it.");
  if (line.Has("output") && line.Get("output") == line.Get("indices")) {
    flags.Fail("indices", "It names the same file as --output.");
  }
  for (const char* const output : {"output", "indices"}) {
    if (!line.Has(output)) continue;
    const absl::Status writable = NpyWriter::CheckPath(*line.Get(output));
    if (!writable.ok()) return Fail(writable);
  }
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;

  std::optional<ProgressBar> bar;
  if (ProgressBar::IsWanted(input->bytes.size)) {
    bar.emplace(input->bytes.size);
    options.progress = [&bar](uint64_t sent_bytes) { bar->Show(sent_bytes); };
  }
  ResultSink sink({line.Get("output"), line.Get("indices")});
  const absl::StatusOr<v1::ExecutionStatistics> statistics =
      client->Execute(desc, std::move(input->bytes), sink, options);
  bar.reset();
  if (!statistics.ok()) return Fail(statistics.status());
  const absl::Status status = sink.Commit();
  if (!status.ok()) return Fail(status);
  Print(line.Has("json") ? sink.Json(*statistics) : sink.Text());
  return kDone;
}

}  // namespace

const Verb& RunVerb() {
  static const Verb* const verb = new Verb{
      .name = "run",
      .arguments = "OPERATOR",
      .argument_choices = OperatorNames(),
      .summary = "computes an operator of a NumPy file",
      .details =
          "OPERATOR is argmin, argmax, reduce, top_k or hardmax. The input is a .npy file of\n"
          "format 1.0 to 3.0 in C or Fortran order. Without --output a result of up to 1000\n"
          "elements is printed as NumPy prints it, and of a longer one shape, type, min and "
          "max.\n\n"
          "  opmill run argmin  --input x.npy --axes 0,1\n"
          "  opmill run reduce  --function sum --input x.npy --axes 1 --output y.npy\n"
          "  opmill run top_k   --input x.npy --axis -1 --k 5 --output v.npy --indices i.npy\n"
          "  opmill run hardmax --input x.npy --axes 0,2 --output y.npy\n",
      .flags = WithCommonFlags(
          OperatorFlags({{"input", "FILE", "the .npy file to compute of"},
                         {"output", "FILE", "write the result there, as .npy; of top_k the values"},
                         {"indices", "FILE", "top_k: write the indices there"}})),
      .run = &Run};
  return *verb;
}

}  // namespace opmill
