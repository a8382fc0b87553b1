// Which requests one run may compute together, and the programs of such runs.
#ifndef OPMILL_SERVER_EXECUTION_JOINABLE_H_
#define OPMILL_SERVER_EXECUTION_JOINABLE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/program/program.h"
#include "server/execution/execution.h"
#include "server/models/batch_options.h"

namespace opmill {

// Requests that differ only in their rows: for the same model, which joins requests; or for the
// same operator and the same resident tensors, if its schema has rows. Immutable.
class Joinable {
 public:
  // Null if the request is computed alone.
  static std::unique_ptr<const Joinable> Of(const ExecutionRequest& request);
  virtual ~Joinable() = default;

  // Equal keys are necessary; objects in them may be gone, and others have their addresses.
  virtual std::string Key() const = 0;
  virtual bool IsSameAs(const Joinable& other) const = 0;
  virtual const BatchOptions& options() const = 0;

  // The program for so many rows: null if it has not been made yet.
  virtual std::shared_ptr<const Program> Find(uint32_t rows) const = 0;
  // Null if it is not needed any more.
  virtual absl::StatusOr<std::shared_ptr<const Program>> Make(uint32_t rows) const = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_JOINABLE_H_
