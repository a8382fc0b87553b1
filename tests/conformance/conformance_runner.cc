#include "tests/conformance/conformance_runner.h"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/case_verdict.h"

namespace opmill {
namespace {

constexpr size_t kMostStarted = 64;

std::vector<std::byte> BytesOf(const Range& range) {
  return {range.bytes().begin(), range.bytes().end()};
}

}  // namespace

ConformanceRunner::ConformanceRunner(Device& device, CompilePlan compile)
    : device_(device), compile_(compile), before_(device.counters()), began_(absl::Now()) {}

void ConformanceRunner::RunTogether(const std::vector<ConformanceCase>& cases) {
  if (failures_ >= kMostFailures) {
    skipped_ += cases.size();
    return;
  }
  const absl::StatusOr<OperatorPlan> plan = MakePlan(cases[0].desc, cases[0].options);
  counts_[FullName(cases[0].desc)] += cases.size();
  const auto compiled = !plan.ok()            ? plan.status()
                        : compile_ != nullptr ? compile_(device_, cases[0].desc, *plan)
                                              : device_.Compile(cases[0].desc);
  if (!compiled.ok()) {
    Fail(cases[0], compiled.status().ToString());
    return;
  }
  const size_t first = started_.size();
  for (const ConformanceCase& c : cases) {
    auto started = std::make_unique<Started>();
    started->c = c;
    if (const absl::Status status = Bind(*plan, **compiled, *started); !status.ok()) {
      Fail(c, status.ToString());
      continue;
    }
    started_.push_back(std::move(started));
  }
  for (size_t i = first; i < started_.size(); ++i) Start(*compiled, *plan, *started_[i]);
  while (started_.size() > kMostStarted) FinishOldest();
}

absl::Status ConformanceRunner::Bind(const OperatorPlan& plan, const CompiledProgram& compiled,
                                     Started& started) {
  started.inputs = MakeInputs(started.c);
  for (int i = 0; i < (IsInexact(started.c.desc) ? 2 : 1); ++i) {
    ASSIGN_OR_RETURN(Bindings bindings, Bind(plan, started.inputs));
    started.attempts.emplace_back().bindings = std::move(bindings);
  }
  const uint64_t incremental_bytes = compiled.cost().incremental_bytes;
  if (incremental_bytes == 0) return absl::OkStatus();
  Started::Attempt& attempt = started.attempts.emplace_back();
  attempt.is_incremental = true;
  ASSIGN_OR_RETURN(attempt.bindings, Bind(plan, started.inputs));
  ASSIGN_OR_RETURN(attempt.bindings.inputs[0],
                   device_.Allocate(incremental_bytes, Residency::kUpload));
  return absl::OkStatus();
}

void ConformanceRunner::Start(const std::shared_ptr<const CompiledProgram>& compiled,
                              const OperatorPlan& plan, Started& started) {
  for (Started::Attempt& attempt : started.attempts) {
    if (attempt.is_incremental) {
      attempt.result = RunIncrementally(compiled, attempt.bindings, started.inputs[0]);
      attempt.done->Notify();
      continue;
    }
    for (const Pass& pass : plan.passes) planned_dispatches_ += pass.dispatches.size();
    device_.Run(compiled, attempt.bindings, {}, [&attempt](absl::StatusOr<RunStatistics> result) {
      attempt.result = std::move(result);
      attempt.done->Notify();
    });
  }
}

absl::StatusOr<RunStatistics> ConformanceRunner::RunIncrementally(
    const std::shared_ptr<const CompiledProgram>& compiled, const Bindings& bindings,
    absl::Span<const std::byte> input) {
  ASSIGN_OR_RETURN(const std::unique_ptr<IncrementalRun> run,
                   device_.BeginIncremental(compiled, bindings));
  ++incremental_runs_;
  // Parts that fit neither elements nor steps.
  for (size_t size = 1; !input.empty(); size = size * 3 % 70001) {
    run->Add(input.first(std::min(size, input.size())));
    input.remove_prefix(std::min(size, input.size()));
  }
  return run->Finish();
}

absl::StatusOr<Bindings> ConformanceRunner::Bind(const OperatorPlan& plan, const Inputs& inputs) {
  Bindings bindings;
  for (const std::vector<std::byte>& input : inputs) {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                     device_.Allocate(input.size(), Residency::kUpload));
    std::memcpy(buffer->bytes().data(), input.data(), input.size());
    bindings.inputs.push_back(std::move(buffer));
  }
  for (const uint64_t size_bytes : plan.output_bytes) {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> output,
                     device_.Allocate(size_bytes, Residency::kReadback));
    // Bytes that no kernel writes must not be right by chance.
    std::memset(output->bytes().data(), 0xCD, output->bytes().size());
    bindings.outputs.push_back(std::move(output));
  }
  return bindings;
}

std::string ConformanceRunner::Verdict(Started& started) {
  std::vector<Outputs> attempts;
  for (const Started::Attempt& attempt : started.attempts) {
    attempt.done->WaitForNotification();
    Outputs outputs;
    for (const Range& output : attempt.bindings.outputs) {
      outputs.push_back(BytesOf(output));
    }
    attempts.push_back(std::move(outputs));
  }
  for (const Started::Attempt& attempt : started.attempts) {
    if (!attempt.result.ok()) return attempt.result.status().ToString();
  }
  for (const Outputs& again : attempts) {
    if (again != attempts[0]) return "two runs over the same bytes differ";
  }
  return FindMistake(started.c, started.inputs, attempts[0]);
}

void ConformanceRunner::FinishOldest() {
  const std::unique_ptr<Started> started = std::move(started_.front());
  started_.pop_front();
  const std::string mistake = Verdict(*started);
  if (!mistake.empty()) Fail(started->c, mistake);
}

void ConformanceRunner::Fail(const ConformanceCase& c, const std::string& mistake) {
  ++failures_;
  ADD_FAILURE() << mistake << "\nreproduce: conformance_test --case '" << ToLine(c) << "'";
}

void ConformanceRunner::Finish() {
  while (!started_.empty()) FinishOldest();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began_);
  const DeviceCounters after = device_.counters();
  uint64_t total = 0;
  std::string text;
  for (const auto& [label, count] : counts_) {
    total += count;
    absl::StrAppend(&text, "  ", label, " ", count);
  }
  cases_in_all_ += total;
  std::cout << absl::StrFormat(
                   "%d cases in %.1f s, %.0f a second; %d kernel permutations, %d runs in %d "
                   "dispatches and %d submissions, %d runs were incremental, on %s\n",
                   total, seconds, static_cast<double>(total) / seconds,
                   after.pipelines_created - before_.pipelines_created, after.runs - before_.runs,
                   after.dispatches - before_.dispatches, after.submissions - before_.submissions,
                   incremental_runs_, device_.info().name)
            << text << std::endl;
  if (skipped_ > 0) {
    ADD_FAILURE() << skipped_ << " cases were not run after " << failures_ << " failures";
  }
}

}  // namespace opmill
