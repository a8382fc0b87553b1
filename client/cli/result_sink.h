// Writes the outputs of `opmill run` to files or the screen, or summarizes them.
#ifndef OPMILL_CLIENT_CLI_RESULT_SINK_H_
#define OPMILL_CLIENT_CLI_RESULT_SINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/output_plan.h"
#include "client/execution.h"
#include "client/npy_writer.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Holds one chunk of each output in memory; outputs for standard output, for an archive, and small
// ones for the screen are held completely. A signal that ends the program removes unfinished files.
class ResultSink : public OutputSink {
 public:
  // `targets` are in the order of the outputs. `dropped_axes`, which have size 1, are removed from
  // the shapes of the outputs.
  ResultSink(std::vector<OutputTarget> targets, std::vector<uint32_t> dropped_axes)
      : targets_(std::move(targets)), dropped_axes_(std::move(dropped_axes)) {}

  absl::Status Start(const v1::ExecutionStarted& started) override;
  absl::Status Write(size_t output, uint64_t offset, const Payload& bytes) override;

  // To be called after success: gives the files their names.
  absl::Status Commit();
  std::string Text() const;
  // A JSON object without braces.
  std::string Json(const v1::ExecutionStatistics& statistics) const;

  // A .npy file for standard output or an archive.
  struct Npy {
    OutputTarget target;
    std::vector<std::byte> bytes;
  };
  std::vector<Npy> TakeNpys();

 private:
  struct Output {
    std::string name;  // of an output of a model, or one of several; else empty
    v1::TensorDesc desc;
    bool is_bool = false;
    uint64_t bytes = 0;
    OutputTarget target;
    std::unique_ptr<NpyWriter> writer;
    std::vector<std::byte> pending;  // a partial element; or all elements; or the .npy file
    bool is_kept = false;            // `pending` holds all elements
    // The extremes so far, for the summary.
    std::vector<std::byte> min;
    std::vector<std::byte> max;
  };
  static void Summarize(Output& output);
  static std::string TypeOf(const Output& output);
  static std::string TextOf(const Output& output);
  static std::string JsonOfOutput(const Output& output);

  const std::vector<OutputTarget> targets_;
  const std::vector<uint32_t> dropped_axes_;
  std::vector<Output> outputs_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_RESULT_SINK_H_
