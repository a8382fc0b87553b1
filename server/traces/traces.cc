#include "server/traces/traces.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/regular_file.h"
#include "opentelemetry/trace_service.pb.h"
#include "server/observe/log.h"
#include "server/observe/recent_errors.h"
#include "server/status/from_grpc.h"

namespace opmill {
namespace {

// With eight spans for each, these take about half a megabyte; collectors accept 4 MiB.
constexpr uint64_t kCallsOfBatch = 512;
constexpr absl::Duration kDelay = absl::Seconds(1);
// For a batch; also how long a collector that is away is waited for.
constexpr absl::Duration kTimeout = absl::Seconds(10);
constexpr absl::Duration kTimeoutOfReason = absl::Seconds(1);
constexpr absl::Duration kBetweenReports = absl::Minutes(1);
constexpr size_t kMostBytesOfAuthorities = size_t{4} << 20;

constexpr char kExport[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

// A batch is not dropped because gRPC waits longer for its next attempt than the batch does.
grpc::ChannelArguments SoonReconnected() {
  grpc::ChannelArguments arguments;
  for (const char* const backoff :
       {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
        GRPC_ARG_MAX_RECONNECT_BACKOFF_MS}) {
    arguments.SetInt(backoff, 1000);
  }
  return arguments;
}

absl::Status CheckAnswer(grpc::ByteBuffer& response) {
  ::opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse answer;
  grpc::ProtoBufferReader reader(&response);
  if (!answer.ParseFromZeroCopyStream(&reader)) {
    return absl::InternalError("The collector's answer is not that of OTLP.");
  }
  const auto& partial = answer.partial_success();
  if (partial.rejected_spans() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("The collector has rejected ", partial.rejected_spans(),
                   " spans: ", Excerpt(partial.error_message(), 200)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Traces>> Traces::Create(const TraceOptions& options,
                                                       std::string device) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.uses_tls) {
    grpc::SslCredentialsOptions ssl;
    if (!options.ca_file.empty()) {
      ASSIGN_OR_RETURN(ssl.pem_root_certs,
                       ReadRegularFile(options.ca_file, kMostBytesOfAuthorities,
                                       absl::StrCat("--trace_ca (", options.ca_file, ")")));
    }
    credentials = grpc::SslCredentials(ssl);
  }
  return std::unique_ptr<Traces>(new Traces(options, credentials, std::move(device)));
}

Traces::Traces(const TraceOptions& options,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials, std::string device)
    : sample_(options.sample),
      channel_(grpc::CreateCustomChannel(options.endpoint, credentials, SoonReconnected())),
      collector_(channel_),
      encoder_(std::move(device)),
      thread_([this] { Export(); }) {}

std::optional<TraceContext> Traces::Sample(absl::string_view traceparent, bool may_begin) const {
  const std::optional<TraceContext> context = ReadTraceparent(traceparent);
  if (context.has_value()) return context->is_sampled ? context : std::nullopt;
  if (!may_begin || !Happens(sample_)) return std::nullopt;
  return NewTrace();
}

void Traces::Add(std::unique_ptr<TracedCall> call) {
  if (call->status.message().size() > kMostTraceText) {
    call->status = absl::Status(call->status.code(),
                                ShortenedSentence(call->status.message(), kMostTraceText));
  }
  const uint64_t before = waiting_.fetch_add(1);
  if (before >= kMostCalls || has_stopped_.load()) {
    waiting_.fetch_sub(1);
    Drop(1);
    return;
  }
  TracedCall* const added = call.release();
  added->next = newest_.load(std::memory_order_relaxed);
  while (!newest_.compare_exchange_weak(added->next, added)) {
  }
  if (before + 1 == kCallsOfBatch) {
    const absl::MutexLock lock(&mutex_);  // the thread is not between its check and its wait
    changed_.SignalAll();
  }
}

void Traces::Stop(absl::Duration patience) {
  {
    const absl::MutexLock lock(&mutex_);
    stop_at_ = std::min(stop_at_, SteadyNow() + patience);
    has_stopped_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  Drop(Take().size());
}

void Traces::Export() {
  bool goes_on = true;
  while (goes_on) {
    goes_on = AwaitBatch();
    const Calls calls = Take();
    for (size_t sent = 0; sent < calls.size(); sent += kCallsOfBatch) {
      const auto batch = absl::MakeConstSpan(calls).subspan(sent, kCallsOfBatch);
      const absl::Status status = Send(batch);
      (status.ok() ? exported_ : dropped_).fetch_add(batch.size(), std::memory_order_relaxed);
      waiting_.fetch_sub(batch.size());
      LogDropped(status);
    }
  }
}

bool Traces::AwaitBatch() {
  const absl::MutexLock lock(&mutex_);
  changed_.Await(
      &mutex_, [this] { return has_stopped_.load() || waiting_.load() >= kCallsOfBatch; },
      SteadyNow() + kDelay);
  return !has_stopped_.load();
}

Traces::Calls Traces::Take() {
  Calls calls;
  for (TracedCall* call = newest_.exchange(nullptr); call != nullptr; call = call->next) {
    calls.emplace_back(call);
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

absl::Status Traces::Send(absl::Span<const std::unique_ptr<TracedCall>> calls) {
  const absl::Duration to_time_of_day =
      absl::FromChrono(std::chrono::system_clock::now()) - SteadyNow();
  for (const std::unique_ptr<TracedCall>& call : calls) encoder_.Add(*call, to_time_of_day);
  grpc::ByteBuffer response;
  // Without waiting a batch would be lost whenever the collector is restarted.
  const grpc::Status status = Call(encoder_.Take(), /*waits=*/true, kTimeout, response);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && !has_stopped_ &&
      channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY) {
    // A call that waits does not say what it waited for. One that does not wait says why there is
    // no connection.
    const grpc::Slice nothing;
    const grpc::Status why =
        Call(grpc::ByteBuffer(&nothing, 1), /*waits=*/false, kTimeoutOfReason, response);
    if (why.error_code() == grpc::StatusCode::UNAVAILABLE) return ToAbslStatus(why);
  }
  return status.ok() ? CheckAnswer(response) : ToAbslStatus(status);
}

grpc::Status Traces::Call(const grpc::ByteBuffer& request, bool waits, absl::Duration timeout,
                          grpc::ByteBuffer& response) {
  std::optional<grpc::Status> answer;
  grpc::ClientContext context;
  context.set_wait_for_ready(waits);
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  collector_.UnaryCall(&context, kExport, {}, &request, &response,
                       [this, &answer](grpc::Status status) {
                         const absl::MutexLock lock(&mutex_);
                         answer = std::move(status);
                         changed_.SignalAll();
                       });
  const absl::MutexLock lock(&mutex_);
  const auto has_come = [&answer] { return answer.has_value(); };
  changed_.Await(
      &mutex_, [&] { return has_come() || has_stopped_.load(); }, absl::InfiniteFuture());
  if (!changed_.Await(&mutex_, has_come, stop_at_)) {
    context.TryCancel();
    changed_.Await(&mutex_, has_come, absl::InfiniteFuture());
  }
  return *std::move(answer);
}

void Traces::LogDropped(const absl::Status& why) {
  const uint64_t dropped = this->dropped();
  const absl::Time now = SteadyNow();
  if (dropped == logged_ || now - logged_at_ < kBetweenReports) return;
  LogLine(LogLevel::kWarning, "traces_dropped")
      .Add("calls", dropped - logged_)
      .Add(why.ok() ? absl::ResourceExhaustedError("More calls ended than could be sent.") : why);
  logged_ = dropped;
  logged_at_ = now;
}

}  // namespace opmill
