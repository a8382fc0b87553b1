#include "client/cli/result_sink.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/array_text.h"
#include "client/cli/interrupt.h"
#include "client/cli/json.h"
#include "client/cli/text_table.h"
#include "client/file_writer.h"
#include "client/names.h"
#include "client/npy.h"
#include "kernels/base/errors.h"
#include "kernels/base/json_text.h"

namespace opmill {
namespace {

// As many as NumPy prints without abbreviation.
constexpr uint64_t kMaxPrintedElements = 1000;

std::vector<uint32_t> SizesOf(const v1::TensorDesc& desc) {
  return {desc.sizes().begin(), desc.sizes().end()};
}

// Removes the axes.
void DropAxes(absl::Span<const uint32_t> axes, v1::TensorDesc& desc) {
  const v1::TensorDesc whole = desc;
  desc.clear_sizes();
  for (int i = 0; i < whole.sizes_size(); ++i) {
    if (!absl::c_linear_search(axes, static_cast<uint32_t>(i))) desc.add_sizes(whole.sizes(i));
  }
}

std::string JsonNumber(v1::DataType type, const std::byte* element) {
  std::string text = ElementText(type, element);
  // JSON has no such numbers; these are the strings of protobuf's JSON.
  if (text == "nan") return "\"NaN\"";
  if (text == "inf") return "\"Infinity\"";
  if (text == "-inf") return "\"-Infinity\"";
  return text;
}

}  // namespace

absl::Status ResultSink::Start(const v1::ExecutionStarted& started) {
  outputs_.clear();
  for (int i = 0; i < started.outputs_size(); ++i) {
    Output output;
    output.desc = started.outputs(i);
    output.bytes = started.output_bytes(i);
    if (ElementBytes(output.desc.data_type()) == 0) {
      return absl::InternalError(
          absl::StrCat("The server sends output ", i, " with an unknown type."));
    }
    if (i < started.model_outputs_size()) {
      output.name = started.model_outputs(i).name();
      output.is_bool = started.model_outputs(i).is_bool();
    } else if (started.outputs_size() == 2) {  // of top_k
      output.name = i == 0 ? "values" : "indices";
    }
    DropAxes(dropped_axes_, output.desc);
    if (static_cast<size_t>(i) < targets_.size()) output.target = targets_[static_cast<size_t>(i)];
    switch (output.target.kind) {
      case OutputTarget::Kind::kScreen:
        output.is_kept =
            output.bytes <= kMaxPrintedElements * ElementBytes(output.desc.data_type());
        break;
      case OutputTarget::Kind::kFile: {
        CleanUpOnSignals(&FileWriter::AbandonAllForExit);
        ASSIGN_OR_RETURN(output.writer,
                         NpyWriter::Create(output.target.path, output.desc, output.is_bool));
        break;
      }
      case OutputTarget::Kind::kStandardOutput:
      case OutputTarget::Kind::kArchive: {
        output.is_kept = true;
        const std::string header =
            MakeNpyHeader(output.desc.data_type(), SizesOf(output.desc), output.is_bool);
        const auto* bytes = reinterpret_cast<const std::byte*>(header.data());
        output.pending.reserve(header.size() + output.bytes);
        output.pending.assign(bytes, bytes + header.size());
        break;
      }
    }
    outputs_.push_back(std::move(output));
  }
  return absl::OkStatus();
}

absl::Status ResultSink::Write(size_t index, uint64_t, const Payload& bytes) {
  Output& output = outputs_[index];
  const size_t kept = output.pending.size();
  output.pending.resize(kept + bytes.size());
  bytes.CopyTo(output.pending.data() + kept);
  if (output.is_kept) return absl::OkStatus();
  if (!output.writer) {
    Summarize(output);
    return absl::OkStatus();
  }
  absl::Status status = output.writer->Append(output.pending);
  output.pending.clear();
  return status;
}

// Like NumPy's min and max: with a NaN, both are NaN.
void ResultSink::Summarize(Output& output) {
  const v1::DataType type = output.desc.data_type();
  const size_t size = ElementBytes(type);
  const size_t whole = output.pending.size() / size * size;
  for (size_t i = 0; i < whole; i += size) {
    const std::byte* element = &output.pending[i];
    const double value = NumberAt(type, element);
    const auto replace = [&](std::vector<std::byte>& best, bool is_better) {
      if (best.empty() || (is_better && !std::isnan(NumberAt(type, best.data())))) {
        best.assign(element, element + size);
      }
    };
    const bool is_nan = std::isnan(value);
    replace(output.min,
            is_nan || (!output.min.empty() && value < NumberAt(type, output.min.data())));
    replace(output.max,
            is_nan || (!output.max.empty() && value > NumberAt(type, output.max.data())));
  }
  output.pending.erase(output.pending.begin(),
                       output.pending.begin() + static_cast<std::ptrdiff_t>(whole));
}

absl::Status ResultSink::Commit() {
  for (Output& output : outputs_) {
    if (!output.writer) continue;
    RETURN_IF_ERROR(output.writer->Commit());
  }
  return absl::OkStatus();
}

std::vector<ResultSink::Npy> ResultSink::TakeNpys() {
  std::vector<Npy> npys;
  for (Output& output : outputs_) {
    const OutputTarget::Kind kind = output.target.kind;
    if (kind == OutputTarget::Kind::kStandardOutput || kind == OutputTarget::Kind::kArchive) {
      npys.push_back({output.target, std::move(output.pending)});
    }
  }
  return npys;
}

std::string ResultSink::Text() const {
  std::string text;
  for (const Output& output : outputs_) absl::StrAppend(&text, TextOf(output));
  return text;
}

std::string ResultSink::TypeOf(const Output& output) {
  return output.is_bool ? "bool" : NameOf(output.desc.data_type());
}

std::string ResultSink::TextOf(const Output& output) {
  const v1::DataType type = output.desc.data_type();
  const std::string& label = output.name;
  const std::string summary = absl::StrCat(label, label.empty() ? "" : " ",
                                           ShapeText(SizesOf(output.desc)), " ", TypeOf(output));
  if (output.target.kind != OutputTarget::Kind::kScreen) {
    return absl::StrCat(summary, " -> ", output.target.Name(), "\n");
  }
  if (!output.is_kept) {
    return absl::StrCat(summary, " min ", ElementText(type, output.min.data()), " max ",
                        ElementText(type, output.max.data()), "\n");
  }
  const std::string text = output.desc.sizes().empty()
                               ? ElementText(type, output.pending.data())
                               : ArrayText(type, SizesOf(output.desc), output.pending);
  return absl::StrCat(label, label.empty() ? "" : ":\n", text, "\n");
}

std::string ResultSink::Json(const v1::ExecutionStatistics& statistics) const {
  std::vector<std::string> outputs;
  for (const Output& output : outputs_) outputs.push_back(JsonOfOutput(output));
  return absl::StrCat("\"outputs\":[", absl::StrJoin(outputs, ","),
                      "],\"statistics\":", JsonOf(statistics));
}

std::string ResultSink::JsonOfOutput(const Output& output) {
  const v1::DataType type = output.desc.data_type();
  std::string json =
      absl::StrCat("{\"data_type\":", JsonString(TypeOf(output)), ",\"sizes\":[",
                   absl::StrJoin(output.desc.sizes(), ","), "],\"bytes\":", output.bytes);
  if (!output.name.empty()) absl::StrAppend(&json, ",\"name\":", JsonString(output.name));
  if (output.target.kind != OutputTarget::Kind::kScreen) {
    absl::StrAppend(&json, ",\"file\":", JsonString(output.target.path));
    if (output.target.kind == OutputTarget::Kind::kArchive) {
      absl::StrAppend(&json, ",\"array\":", JsonString(output.target.member));
    }
  } else if (output.is_kept) {
    std::vector<std::string> elements;
    for (size_t i = 0; i < output.pending.size(); i += ElementBytes(type)) {
      elements.push_back(JsonNumber(type, &output.pending[i]));
    }
    absl::StrAppend(&json, ",\"elements\":[", absl::StrJoin(elements, ","), "]");
  } else {
    absl::StrAppend(&json, ",\"min\":", JsonNumber(type, output.min.data()),
                    ",\"max\":", JsonNumber(type, output.max.data()));
  }
  return json + "}";
}

}  // namespace opmill
