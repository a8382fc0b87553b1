// One CompileOperator call.
#ifndef OPMILL_SERVER_API_COMPILE_CALL_H_
#define OPMILL_SERVER_API_COMPILE_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/operator_cache.h"
#include "server/api/program_call.h"

namespace opmill {

class CompileCall final : public ProgramCall {
 public:
  using ProgramCall::ProgramCall;

 private:
  absl::string_view message_type() const override { return "CompileOperatorRequest"; }
  absl::Status Decode(grpc::ByteBuffer& message) override;
  void HasProgram() override { Compile(); }
  void Compiled(const CachedOperator& found) override;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_COMPILE_CALL_H_
