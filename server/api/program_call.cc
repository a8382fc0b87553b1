#include "server/api/program_call.h"

#include "server/api/call_context.h"
#include "server/api/out_of_memory.h"

namespace opmill {

void ProgramCall::Receive(grpc::ByteBuffer& message) {
  request_.origin = std::move(origin());
  request_.deadline = DeadlineOf(context());
  const absl::Status decoded = CatchOutOfMemory([&] { return Decode(message); });
  if (!decoded.ok()) {
    RefuseRequest(decoded);
  } else if (request_.has_program()) {
    HasProgram();
  } else {
    wanted_.Make(parts().executor, request_, [this](const absl::Status& made) {
      if (made.ok()) {
        HasProgram();
      } else {
        RefuseRequest(made);
      }
    });
  }
}

void ProgramCall::Compile() {
  const absl::Status posted = parts().executor.Compile(
      {.program = request_.op.has_value() ? ProgramOf(*request_.op) : *request_.program,
       .limited = LimitedProgram::Of(request_.model.get()),
       .cancelled = wanted_.token()},
      [this](const absl::StatusOr<CachedOperator>& found) {
        if (found.ok()) {
          Compiled(*found);
        } else {
          const absl::Status why = wanted_.cancelled();
          RefuseRequest(why.ok() ? found.status() : why);
        }
      });
  if (!posted.ok()) RefuseRequest(posted);
}

}  // namespace opmill
