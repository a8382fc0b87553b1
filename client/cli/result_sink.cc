#include "client/cli/result_sink.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/array_text.h"
#include "client/cli/interrupt.h"
#include "client/cli/json.h"
#include "client/names.h"
#include "proto/json_text.h"

namespace opmill {
namespace {

// As many as NumPy prints without cutting.
constexpr uint64_t kMaxPrintedElements = 1000;

std::string ShapeText(const v1::TensorDesc& desc) {
  return absl::StrCat("(", absl::StrJoin(desc.sizes(), ", "), desc.sizes_size() == 1 ? ",)" : ")");
}

std::string JsonNumber(v1::DataType type, const std::byte* element) {
  std::string text = ElementText(type, element);
  // JSON has no such numbers; protobuf's JSON writes them as these strings.
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
          absl::StrCat("The server sends output ", i, " with a type that is unknown here."));
    }
    if (static_cast<size_t>(i) < files_.size()) output.file = files_[static_cast<size_t>(i)];
    output.is_small =
        !output.file && output.bytes <= kMaxPrintedElements * ElementBytes(output.desc.data_type());
    if (output.file) {
      CleanUpOnSignals(&NpyWriter::AbandonAllForExit);
      absl::StatusOr<std::unique_ptr<NpyWriter>> writer =
          NpyWriter::Create(*output.file, output.desc);
      if (!writer.ok()) return writer.status();
      output.writer = *std::move(writer);
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
  if (output.is_small) return absl::OkStatus();
  if (!output.writer) {
    Summarize(output);
    return absl::OkStatus();
  }
  absl::Status status = output.writer->Append(output.pending);
  output.pending.clear();
  return status;
}

// As NumPy's min and max: one NaN makes both NaN.
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
    absl::Status status = output.writer->Commit();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string ResultSink::Text() const {
  std::string text;
  const bool is_top_k = outputs_.size() == 2;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    absl::StrAppend(&text, TextOf(outputs_[i], !is_top_k ? "" : i == 0 ? "values" : "indices"));
  }
  return text;
}

std::string ResultSink::TextOf(const Output& output, const std::string& label) const {
  const v1::DataType type = output.desc.data_type();
  const std::string summary =
      absl::StrCat(label, label.empty() ? "" : " ", ShapeText(output.desc), " ", NameOf(type));
  if (output.file) return absl::StrCat(summary, " -> ", *output.file, "\n");
  if (!output.is_small) {
    return absl::StrCat(summary, " min ", ElementText(type, output.min.data()), " max ",
                        ElementText(type, output.max.data()), "\n");
  }
  const std::vector<uint32_t> sizes(output.desc.sizes().begin(), output.desc.sizes().end());
  return absl::StrCat(label, label.empty() ? "" : ":\n", ArrayText(type, sizes, output.pending),
                      "\n");
}

std::string ResultSink::Json(const v1::ExecutionStatistics& statistics) const {
  std::vector<std::string> outputs;
  for (const Output& output : outputs_) outputs.push_back(JsonOfOutput(output));
  return absl::StrCat("{\"outputs\":[", absl::StrJoin(outputs, ","),
                      "],\"statistics\":", JsonOf(statistics), "}\n");
}

std::string ResultSink::JsonOfOutput(const Output& output) {
  const v1::DataType type = output.desc.data_type();
  std::string json =
      absl::StrCat("{\"data_type\":", JsonString(NameOf(type)), ",\"sizes\":[",
                   absl::StrJoin(output.desc.sizes(), ","), "],\"bytes\":", output.bytes);
  if (output.file) {
    absl::StrAppend(&json, ",\"file\":", JsonString(*output.file));
  } else if (output.is_small) {
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
