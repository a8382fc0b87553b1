#include "kernels/d3d12/queue/recorder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "kernels/base/rounding.h"
#include "kernels/plan/plan_builder.h"

namespace opmill {
namespace {

D3D12_RESOURCE_BARRIER Transition(ID3D12Resource* resource, D3D12_RESOURCE_STATES before,
                                  D3D12_RESOURCE_STATES after) {
  D3D12_RESOURCE_BARRIER barrier = {};
  barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
  barrier.Transition.pResource = resource;
  barrier.Transition.Subresource = D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES;
  barrier.Transition.StateBefore = before;
  barrier.Transition.StateAfter = after;
  return barrier;
}

// The dispatches and fills of a part in its `level`-th pass.
struct PassPart {
  PlanCursor begin;
  PlanCursor end;
  bool is_present = false;  // false if the part has fewer passes

  bool begins() const { return begin == PlanCursor{begin.pass, 0, 0}; }
};

PassPart PassOf(const RunPart& part, size_t level) {
  if (level >= part.pass_count()) return {};
  const PlanCursor pass = {part.begin.pass + level, 0, 0};
  return {.begin = level == 0 ? part.begin : pass,
          .end = pass.pass == part.end.pass ? part.end : PlanCursor{pass.pass + 1, 0, 0},
          .is_present = true};
}

// True if they are the same, or both in the same resource, and in one that a view may span.
bool CanShareView(const SlicePart& a, const SlicePart& b) {
  return a.resource == b.resource && (a.offset == b.offset || (a.is_shared && b.is_shared));
}

bool GoTogether(const RunPart& a, const RunPart& b) {
  const QueuedRun& run = RunOf(a);
  const QueuedRun& other = RunOf(b);
  if (run.compiled != other.compiled || !a.is_whole() || !b.is_whole()) return false;
  const auto shares = [&](BufferRole role) {
    return CanShareView(run.BufferOf(role), other.BufferOf(role));
  };
  for (uint32_t i = 0; i < run.inputs.size(); ++i) {
    if (!shares(BufferRole::Input(i))) return false;
  }
  for (uint32_t i = 0; i < run.outputs.size(); ++i) {
    if (!shares(BufferRole::Output(i))) return false;
  }
  return shares(BufferRole::Scratch());
}

// Whether a pass of the part, after its first, is of another step than the one before.
bool BeginsStep(const RunPart& part, size_t level) {
  const std::vector<uint32_t>& operators = part.run->plan->operators;
  const size_t pass = part.begin.pass + level;
  return operators[pass] != operators[pass - 1];
}

// Calls `function` with the run and each fill of the parts' `level`-th pass.
template <typename Function>
void ForEachFill(absl::Span<const RunPart> parts, size_t level, const Function& function) {
  for (const RunPart& part : parts) {
    const PassPart pass = PassOf(part, level);
    if (!pass.is_present || !pass.begins()) continue;
    for (const Fill& fill : part.run->plan->passes[pass.begin.pass].fills) {
      function(RunOf(part), fill);
    }
  }
}

}  // namespace

std::vector<uint32_t> StepNumbersOf(const RunPart& part) {
  std::vector<uint32_t> steps;
  if (part.run->plan->operators.empty()) return steps;
  for (size_t level = 0; level < part.pass_count(); ++level) {
    if (level > 0 && !BeginsStep(part, level)) continue;
    steps.push_back(part.run->plan->operators[part.begin.pass + level]);
  }
  return steps;
}

Recorder::Recorder(ID3D12GraphicsCommandList* list, ID3D12RootSignature* root_signature,
                   const RecordingMemory& memory)
    : list_(list),
      memory_(memory),
      next_table_(memory.first_table),
      next_more_reads_(memory.first_more_reads) {
  ID3D12DescriptorHeap* heaps[] = {memory_.heap.heap()};
  list_->SetDescriptorHeaps(1, heaps);
  list_->SetComputeRootSignature(root_signature);
}

uint32_t Recorder::Record(absl::Span<const RunPart> parts) {
  size_t levels = 0;
  for (const RunPart& part : parts) {
    levels = std::max(levels, part.pass_count());
    follows_other_lists_ |= !part.is_first() || RunOf(part).uses_device_buffers();
    continues_ |= !part.is_first();
  }
  const std::vector<Cohort> cohorts = FormCohorts(parts);
  Upload(parts);
  RecordTimestamp(memory_.first_timestamp);
  for (size_t level = 0; level < levels; ++level) {
    if (level > 0) {
      if (memory_.step_timestamps != nullptr && BeginsStep(parts[0], level)) RecordStepTimestamp();
      RecordFills(parts, level);
    }
    PrepareLevel(parts, level);
    RecordDispatches(cohorts, level);
  }
  RecordTimestamp(memory_.first_timestamp + 1);
  RecordStepTimestamp();
  DownloadOutputs(parts);
  return next_table_ - memory_.first_table;
}

std::vector<Recorder::Cohort> Recorder::FormCohorts(absl::Span<const RunPart> parts) {
  std::vector<Cohort> cohorts;
  for (const RunPart& part : parts) {
    const auto cohort =
        std::find_if(cohorts.begin(), cohorts.end(), [&part](const Cohort& candidate) {
          return candidate.runs.size() < OPMILL_MAX_INSTANCES && GoTogether(candidate.part, part);
        });
    if (cohort == cohorts.end()) {
      cohorts.push_back({.part = part, .runs = {&RunOf(part)}});
    } else {
      cohort->runs.push_back(&RunOf(part));
    }
  }
  return cohorts;
}

// What kernels of this list read and the device has not yet, and the fills of the first level.
void Recorder::Upload(absl::Span<const RunPart> parts) {
  FindNewConstants(parts);
  const auto for_each_copy = [&](const auto& copy) {
    for (const DeviceConstants* constants : copied_constants_) {
      copy(constants->slice(), constants->source().From(0), constants->state());
    }
    for (const RunPart& part : parts) {
      if (!part.is_first()) continue;
      for (const BoundTensor& input : RunOf(part).inputs) {
        if (!input.copy) continue;
        copy(input.copy, input.bound(), D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE);
      }
    }
  };
  for_each_copy([this](const BufferSlice& target, const SlicePart&, D3D12_RESOURCE_STATES) {
    Require(target.resource(), D3D12_RESOURCE_STATE_COPY_DEST);
  });
  Flush();
  for_each_copy([this](const BufferSlice& target, const SlicePart& source, D3D12_RESOURCE_STATES) {
    list_->CopyBufferRegion(target.resource(), target.offset(), source.resource, source.offset,
                            target.size_bytes());
  });
  for_each_copy([this](const BufferSlice& target, const SlicePart&, D3D12_RESOURCE_STATES state) {
    Require(target.resource(), state);
  });
  for (const RunPart& part : parts) {  // those that an earlier list has copied
    for (const BoundTensor& input : RunOf(part).inputs) {
      if (!input.copy) continue;
      Require(input.copy.resource(), D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE);
    }
  }
  RecordStepTimestamp();
  RecordFills(parts, 0);
  Flush();
}

void Recorder::FindNewConstants(absl::Span<const RunPart> parts) {
  const auto find = [this](const DeviceConstants& constants) {
    if (constants.needs_copy() && !absl::c_linear_search(copied_constants_, &constants)) {
      copied_constants_.push_back(&constants);
    }
  };
  find(memory_.zeros);
  const D3D12CompiledProgram* last = nullptr;
  for (const RunPart& part : parts) {
    const D3D12CompiledProgram* const compiled = RunOf(part).compiled.get();
    if (compiled == std::exchange(last, compiled)) continue;
    for (const DeviceConstants& kept : compiled->kept()) find(kept);
  }
}

void Recorder::RecordTimestamp(uint32_t index) {
  if (memory_.timestamps == nullptr) return;
  memory_.timestamps->Record(list_, index);
  ++timestamps_;
}

void Recorder::RecordStepTimestamp() {
  if (memory_.step_timestamps == nullptr) return;
  memory_.step_timestamps->Record(list_, next_step_timestamp_++);
  ++timestamps_;
}

void Recorder::RecordFills(absl::Span<const RunPart> parts, size_t level) {
  ForEachFill(parts, level, [this](const QueuedRun& run, const Fill& fill) {
    Require(run.BufferOf(fill.role).resource, D3D12_RESOURCE_STATE_COPY_DEST);
  });
  Flush();
  ForEachFill(parts, level,
              [this](const QueuedRun& run, const Fill& fill) { RecordFill(run, fill); });
  ForEachFill(parts, level, [this](const QueuedRun& run, const Fill& fill) {
    Require(run.BufferOf(fill.role).resource, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
  });
}

void Recorder::RecordFill(const QueuedRun& run, const Fill& fill) {
  const SlicePart target = run.BufferOf(fill.role);
  for (uint64_t done = 0; done < fill.size_bytes; done += kZeroBytes) {
    list_->CopyBufferRegion(target.resource, target.offset + fill.offset_bytes + done,
                            memory_.zeros.slice().resource(), memory_.zeros.slice().offset(),
                            std::min(kZeroBytes, fill.size_bytes - done));
  }
}

void Recorder::FindUses(absl::Span<const RunPart> parts, size_t level) {
  for (Tracked& tracked : tracked_) {
    tracked.was_used |= tracked.is_read || tracked.is_written;
    tracked.is_read = tracked.is_written = false;
  }
  const auto for_each_view = [&](bool writes, const auto& use) {
    for (const RunPart& part : parts) {
      const PassPart pass = PassOf(part, level);
      if (!pass.is_present) continue;
      for (const Dispatch& dispatch : part.run->plan->passes[pass.begin.pass].dispatches) {
        const auto views =
            writes ? absl::MakeConstSpan(dispatch.writes) : absl::MakeConstSpan(dispatch.reads);
        for (const BufferView& view : views) {
          if (view.element_count > 0) use(RunOf(part).BufferOf(view.role).resource);
        }
      }
    }
  };
  for_each_view(true, [&](ID3D12Resource* resource) { Track(resource).is_written = true; });
  for_each_view(false, [&](ID3D12Resource* resource) {
    for (Tracked& tracked : tracked_) tracked.is_read |= tracked.resource == resource;
  });
}

// A transition for each resource that is used otherwise than before, and one barrier for those that
// kernels write again.
void Recorder::PrepareLevel(absl::Span<const RunPart> parts, size_t level) {
  constexpr D3D12_RESOURCE_STATES kRead = D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE;
  constexpr D3D12_RESOURCE_STATES kWritten = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
  FindUses(parts, level);
  bool follows_writes = level == 0 && follows_other_lists_;
  for (const Tracked& tracked : tracked_) {
    follows_writes |= tracked.is_written && tracked.state == kWritten && tracked.was_used;
  }
  if (follows_writes) {
    barriers_.emplace_back();  // of all resources
    barriers_.back().Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
  }
  for (Tracked& tracked : tracked_) {
    if (tracked.is_written && tracked.is_read && tracked.state == kWritten && tracked.was_used) {
      Require(tracked.resource, kRead);
    } else if (tracked.is_written || tracked.is_read) {
      Require(tracked.resource, tracked.is_written ? kWritten : kRead);
    }
  }
  Flush();
  for (Tracked& tracked : tracked_) {
    if (tracked.is_written) Require(tracked.resource, kWritten);
  }
  Flush();
}

void Recorder::RecordDispatches(absl::Span<const Cohort> cohorts, size_t level) {
  for (const Cohort& cohort : cohorts) {
    const PassPart pass = PassOf(cohort.part, level);
    if (!pass.is_present) continue;
    ForEachDispatch(
        *cohort.part.run->plan, pass.begin, pass.end,
        [&](const PlanCursor& at, uint32_t end_group) { RecordDispatch(cohort, at, end_group); });
  }
}

void Recorder::RecordDispatch(const Cohort& cohort, const PlanCursor& at, uint32_t end_group) {
  const D3D12CompiledProgram& compiled = *RunOf(cohort.part).compiled;
  const Dispatch& dispatch = compiled.plan().passes[at.pass].dispatches[at.dispatch];
  const size_t count = cohort.runs.size();
  std::array<Instance, OPMILL_MAX_INSTANCES> instances = {};
  // One view spans the buffers of all runs; instances hold where each run's buffers start in it.
  const auto place = [&](const BufferView& view, uint32_t Instance::*start) -> ResourceView {
    if (view.element_count == 0) return {.format = view.format};
    std::array<uint64_t, OPMILL_MAX_INSTANCES> offsets = {};
    for (size_t i = 0; i < count; ++i) offsets[i] = cohort.runs[i]->BufferOf(view.role).offset;
    const auto [first, last] = std::minmax_element(offsets.begin(), offsets.begin() + count);
    const uint64_t element_bytes = ViewElementBytes(view.format);
    for (size_t i = 0; i < count; ++i) {
      instances[i].*start = static_cast<uint32_t>((offsets[i] - *first) / element_bytes);
    }
    return {.resource = cohort.runs[0]->BufferOf(view.role).resource,
            .format = view.format,
            .offset_bytes = *first + view.offset_bytes,
            .element_count = view.element_count + (*last - *first) / element_bytes};
  };
  constexpr uint32_t Instance::*kReadStarts[kReadSlots] = {
      &Instance::read0, &Instance::read1, &Instance::read2, &Instance::read3,
      &Instance::read4, &Instance::read5, &Instance::read6, &Instance::read7};
  std::array<ResourceView, kReadSlots> reads;
  for (size_t i = 0; i < kReadSlots; ++i) reads[i] = place(dispatch.reads[i], kReadStarts[i]);
  const std::array<ResourceView, kWriteSlots> writes = {
      place(dispatch.writes[0], &Instance::write0), place(dispatch.writes[1], &Instance::write1)};

  if (ID3D12PipelineState* pipeline = compiled.pipeline(dispatch.kernel); pipeline != pipeline_) {
    list_->SetPipelineState(pipeline);
    pipeline_ = pipeline;
  }
  Dispatch grid = {.groups = dispatch.groups};
  const bool is_cut = at.group != 0 || end_group != GroupsOf(dispatch);
  ConstantsView constants = compiled.constants(at.pass, at.dispatch);
  if (is_cut || count > 1) {
    grid.constants = dispatch.constants;
    if (is_cut) SetGroups(grid, end_group - at.group, at.group);
    constants = WriteConstants(grid.constants.bytes(), absl::MakeConstSpan(instances).first(count));
  }
  list_->SetComputeRootDescriptorTable(
      kRootTable, memory_.heap.WriteTable(next_table_++, constants, reads, writes));
  if (dispatch.has_more_reads()) {
    list_->SetComputeRootDescriptorTable(kMoreReadsTable,
                                         memory_.heap.WriteMoreReads(next_more_reads_++, reads));
  }
  list_->Dispatch(grid.groups[0], grid.groups[1], static_cast<UINT>(count));
}

ConstantsView Recorder::WriteConstants(absl::Span<const std::byte> constants,
                                       absl::Span<const Instance> instances) {
  const uint64_t start = constants_used_;
  std::byte* const to = memory_.constants.data() + start;
  std::memcpy(to, constants.data(), constants.size());
  std::memcpy(to + constants.size(), instances.data(), instances.size() * sizeof(Instance));
  const uint64_t size_bytes = RoundUp(constants.size() + instances.size() * sizeof(Instance),
                                      D3D12_CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT);
  constants_used_ += size_bytes;
  return {.address = memory_.constants.gpu_address() + start,
          .size_bytes = static_cast<uint32_t>(size_bytes)};
}

void Recorder::DownloadOutputs(absl::Span<const RunPart> parts) {
  for (const bool is_dry : {true, false}) {
    for (const RunPart& part : parts) {
      if (!part.is_last()) continue;
      const std::vector<BoundTensor>& outputs = RunOf(part).outputs;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const BufferSlice& source = outputs[i].copy;
        const SlicePart target = outputs[i].bound();
        if (!source) continue;
        if (is_dry) {
          Require(source.resource(), D3D12_RESOURCE_STATE_COPY_SOURCE);
        } else {
          list_->CopyBufferRegion(target.resource, target.offset, source.resource(),
                                  source.offset(), part.run->plan->output_bytes[i]);
        }
      }
    }
    Flush();
  }
}

Recorder::Tracked& Recorder::Track(ID3D12Resource* resource) {
  const auto found =
      std::find_if(tracked_.begin(), tracked_.end(),
                   [resource](const Tracked& tracked) { return tracked.resource == resource; });
  return found != tracked_.end() ? *found : tracked_.emplace_back(Tracked{.resource = resource});
}

void Recorder::Require(ID3D12Resource* resource, D3D12_RESOURCE_STATES state) {
  Tracked& tracked = Track(resource);
  if (tracked.state == state) return;
  if (tracked.state == D3D12_RESOURCE_STATE_COMMON && !continues_) {
    tracked.state = state;
    return;
  }
  barriers_.push_back(Transition(resource, tracked.state, state));
  tracked.state = state;
}

void Recorder::Flush() {
  if (barriers_.empty()) return;
  ++barrier_calls_;
  list_->ResourceBarrier(static_cast<UINT>(barriers_.size()), barriers_.data());
  barriers_.clear();
}

}  // namespace opmill
