// Where the outputs of `opmill run` go: into files, onto the screen, or into a summary.
#ifndef OPMILL_CLIENT_CLI_RESULT_SINK_H_
#define OPMILL_CLIENT_CLI_RESULT_SINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/execution.h"
#include "client/npy_writer.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Keeps a chunk of each output, and the elements of those that are small and have no file. A
// signal that ends the program while a file is being written leaves nothing of the file.
class ResultSink : public OutputSink {
 public:
  // The files of the outputs, in their order; no name for one that is to be printed.
  explicit ResultSink(std::vector<std::optional<std::string>> files) : files_(std::move(files)) {}

  absl::Status Start(const v1::ExecutionStarted& started) override;
  absl::Status Write(size_t output, uint64_t offset, const Payload& bytes) override;

  // After a good end: gives the files their names.
  absl::Status Commit();
  std::string Text() const;
  std::string Json(const v1::ExecutionStatistics& statistics) const;

 private:
  struct Output {
    v1::TensorDesc desc;
    uint64_t bytes = 0;
    std::optional<std::string> file;
    std::unique_ptr<NpyWriter> writer;
    std::vector<std::byte> pending;  // what Write got: the rest of an element, or all of them
    bool is_small = false;
    // Elements so far, for a summary.
    std::vector<std::byte> min;
    std::vector<std::byte> max;
  };
  static void Summarize(Output& output);
  std::string TextOf(const Output& output, const std::string& label) const;
  static std::string JsonOfOutput(const Output& output);

  std::vector<std::optional<std::string>> files_;
  std::vector<Output> outputs_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_RESULT_SINK_H_
