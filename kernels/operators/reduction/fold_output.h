// What becomes of the results of a fold on the processor.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_OUTPUT_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cpu/cpu_program.h"
#include "kernels/operators/reduction/fold_work.h"

namespace opmill {

// How elements are read. Rows and columns whose elements are adjacent are read in place. Other
// layouts are gathered first: into rows if there are few results, otherwise into columns.
enum class FoldMode { kRows, kColumns, kPackedRows, kPackedColumns };

// A family that stores something else than the results derives from it. Results are those of
// FoldKernels::finish: elements of the input's type, or UINT32 positions. Immutable after Divide.
class FoldOutput {
 public:
  // What has a place in the output. Incremental runs exist only for the first two.
  enum class Holds { kResults, kElements, kOther };

  explicit FoldOutput(Holds holds) : holds_(holds) {}
  virtual ~FoldOutput() = default;

  Holds holds() const { return holds_; }
  virtual uint64_t cost_bytes() const { return 0; }  // in addition to reading, once

  // Called first, with the number of parts of a reduction. Returns whether every element of the
  // output will be written; if not, they are cleared before.
  virtual bool Divide(FoldMode /*mode*/, uint64_t /*splits*/) { return true; }
  // Before positions [begin, end) of `width` results, from `result` on, are folded.
  virtual void Clear(uint64_t /*result*/, uint64_t /*width*/, uint64_t /*begin*/, uint64_t /*end*/,
                     const RunBuffers& /*buffers*/) const {}
  // Stores `width` results, from `result` on.
  virtual void Store(const std::byte* results, uint64_t result, uint64_t width,
                     const RunBuffers& buffers) const = 0;
  // The same in an incremental run, of adjacent elements from `element` on.
  virtual void ClearStep(uint64_t /*element*/, uint64_t /*count*/,
                         const RunBuffers& /*buffers*/) const {}
  virtual void StoreStep(const std::byte* results, uint64_t result, uint64_t width,
                         const RunBuffers& buffers) const {
    Store(results, result, width, buffers);
  }
  virtual void FinishTask() const {}

 private:
  const Holds holds_;
};

// Stores the results, of which each takes so many bytes; wider positions are extended with zeros.
std::unique_ptr<FoldOutput> MakeResultsOutput(const FoldWork& work, uint32_t result_bytes);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_FOLD_OUTPUT_H_
