#include "tests/end_to_end/overload_load.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/end_to_end/stream_fixture.h"

namespace opmill {
namespace {

constexpr uint32_t kRow = 16384;     // elements; 64 KiB
constexpr uint32_t kRepeats = 1024;  // repetitions of the row: 16 Mi elements are read

v1::TensorDesc Floats(std::vector<uint32_t> sizes, std::vector<uint32_t> strides) {
  v1::TensorDesc tensor;
  tensor.set_data_type(v1::DATA_TYPE_FLOAT32);
  tensor.mutable_sizes()->Assign(sizes.begin(), sizes.end());
  tensor.mutable_strides()->Assign(strides.begin(), strides.end());
  return tensor;
}

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  return details;
}

}  // namespace

std::unique_ptr<v1::OperatorService::Stub> ConnectTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  EXPECT_TRUE(channel->WaitForConnected(absl::ToChronoTime(absl::Now() + kPatience)));
  return v1::OperatorService::NewStub(channel);
}

v1::OperatorDesc HeavyMaximum() {
  v1::OperatorDesc desc;
  desc.mutable_reduce()->set_function(v1::REDUCE_FUNCTION_MAX);
  *desc.mutable_reduce()->mutable_input() = Floats({kRepeats, kRow}, {0, 1});
  desc.mutable_reduce()->add_axes(0);
  desc.mutable_reduce()->add_axes(1);
  return desc;
}

absl::Duration Distribution::at(double part) const {
  if (sorted.empty()) return absl::ZeroDuration();
  const double index = std::ceil(part * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<size_t>(std::max(0.0, index))];
}

std::string Distribution::Text() const {
  const auto text = [](absl::Duration duration) {
    return absl::StrCat(absl::ToInt64Microseconds(duration), " us");
  };
  return absl::StrCat("p50 ", text(at(0.5)), ", p90 ", text(at(0.9)), ", p99 ", text(at(0.99)),
                      ", most ", text(at(1)));
}

// Deletes itself after it has reported its end.
class Load::Call final : public grpc::ClientReadReactor<v1::ExecuteResponse> {
 public:
  Call(Load& load, v1::OperatorService::Stub& stub, uint64_t number, bool is_offered)
      : load_(load), is_offered_(is_offered), largest_(static_cast<float>(1 + number % 100000)) {
    std::vector<float> row(kRow, 0.5f);
    row[number * 7919 % kRow] = largest_;
    *request_.mutable_operator_() = HeavyMaximum();
    request_.add_inputs(row.data(), row.size() * sizeof(float));
    stub.async()->Execute(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  bool is_offered() const { return is_offered_; }
  absl::Duration latency() const { return absl::Now() - began_; }
  bool is_right() const {
    float answer = 0;
    if (output_.size() != sizeof(answer)) return false;
    std::memcpy(&answer, output_.data(), sizeof(answer));
    return answer == largest_;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    for (const v1::TensorChunk& chunk : response_.chunks()) output_ += chunk.data();
    StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    load_.Ended(*this, status);
    delete this;
  }

 private:
  Load& load_;
  const bool is_offered_;
  const float largest_;
  const absl::Time began_ = absl::Now();
  grpc::ClientContext context_;
  v1::ExecuteRequest request_;
  v1::ExecuteResponse response_;
  std::string output_;
};

Load::Load(const std::string& address, int connections) {
  for (int i = 0; i < connections; ++i) stubs_.push_back(ConnectTo(address));
}

Load::~Load() { WaitForAll(); }

void Load::Start(bool is_offered) {
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  const uint64_t number = started_++;
  new Call(*this, *stubs_[number % stubs_.size()], number, is_offered);
}

void Load::Ended(const Call& call, const grpc::Status& status) {
  const absl::Duration latency = call.latency();
  const google::rpc::Status details = DetailsOf(status);
  const std::lock_guard lock(mutex_);
  if (status.ok()) {
    ++succeeded_;
    if (!call.is_right()) ++outcomes_.wrong;
    if (call.is_offered()) outcomes_.accepted.sorted.push_back(latency);
  } else if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) {
    outcomes_.others.push_back(absl::StrCat(status.error_code(), " ", status.error_message()));
  } else if (!DetailOf<google::rpc::ErrorInfo>(details).has_value()) {
    ++outcomes_.by_transport;
  } else {
    if (!DetailOf<google::rpc::RetryInfo>(details).has_value()) ++outcomes_.without_retry;
    if (call.is_offered()) outcomes_.refused.sorted.push_back(latency);
  }
  --under_way_;
  changed_.notify_all();
}

void Load::WaitForAll() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return under_way_ == 0; });
}

double Load::MeasureCapacity(int lanes, absl::Duration duration) {
  const absl::Time begin = absl::Now();
  uint64_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    before = succeeded_;
  }
  while (absl::Now() < begin + duration) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return under_way_ < static_cast<uint64_t>(lanes); });
    }
    Start(/*is_offered=*/false);
  }
  WaitForAll();
  const std::lock_guard lock(mutex_);
  return static_cast<double>(succeeded_ - before) / absl::ToDoubleSeconds(absl::Now() - begin);
}

Outcomes Load::Offer(double rate, absl::Duration duration) {
  const absl::Time begin = absl::Now();
  for (uint64_t i = 0;; ++i) {
    const absl::Time due = begin + absl::Seconds(static_cast<double>(i) / rate);
    if (due >= begin + duration) break;
    absl::SleepFor(due - absl::Now());
    Start(/*is_offered=*/true);
  }
  WaitForAll();
  const std::lock_guard lock(mutex_);
  std::sort(outcomes_.accepted.sorted.begin(), outcomes_.accepted.sorted.end());
  std::sort(outcomes_.refused.sorted.begin(), outcomes_.refused.sorted.end());
  return std::exchange(outcomes_, {});
}

}  // namespace opmill
