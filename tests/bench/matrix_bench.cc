// Matrix products and convolutions of real models on the processor, beside OpenBLAS and oneDNN
// where the build has found them. Rounds are interleaved. Our time is that of the run, without the
// wait for a thread of the pool.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/program/program.h"

#ifdef OPMILL_HAS_OPENBLAS
extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int threads);
}
#endif
#ifdef OPMILL_HAS_ONEDNN
#include "dnnl.hpp"
#endif

ABSL_FLAG(uint32_t, threads, 2, "threads of the device");
ABSL_FLAG(uint32_t, rounds, 15, "rounds, of which the fastest and the median count");
ABSL_FLAG(std::string, only, "", "only rows whose name contains this");

namespace opmill {
namespace {

struct Row {
  std::string name;
  OperatorDesc desc;
};

TensorDesc Tensor(std::vector<uint32_t> sizes) {
  return {DataType::kFloat32, std::move(sizes), {}};
}

Row Gemm(uint32_t m, uint32_t k, uint32_t n, bool trans_b = false) {
  return {"gemm " + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) +
              (trans_b ? " B transposed" : ""),
          GemmDesc{.a = Tensor({m, k}),
                   .b = trans_b ? Tensor({n, k}) : Tensor({k, n}),
                   .trans_b = trans_b ? MatrixTransform::kTranspose : MatrixTransform::kNone}};
}

Row Convolution(uint32_t channels, uint32_t height, uint32_t width, uint32_t outputs,
                uint32_t filter, uint32_t stride, bool is_depthwise = false) {
  const std::vector<uint32_t> padding(2, filter / 2);
  return {"conv " + std::to_string(filter) + "x" + std::to_string(filter) +
              (is_depthwise ? " depthwise" : "") + (stride > 1 ? " /2 " : " ") +
              std::to_string(channels) + "x" + std::to_string(height) + "x" +
              std::to_string(width) + " to " + std::to_string(outputs),
          ConvolutionDesc{.input = Tensor({1, channels, height, width}),
                          .filter = Tensor({outputs, is_depthwise ? 1 : channels, filter, filter}),
                          .bias = Tensor({1, outputs, 1, 1}),
                          .strides = {stride, stride},
                          .start_padding = padding,
                          .end_padding = padding,
                          .group_count = is_depthwise ? channels : 1}};
}

// Text detection and recognition, and a sentence encoder.
std::vector<Row> Rows() {
  return {Gemm(1024, 1024, 1024),
          Gemm(4096, 4096, 4096),
          Gemm(128, 384, 384),
          Gemm(128, 384, 1536),
          Gemm(128, 1536, 384),
          Gemm(128, 384, 384, true),
          Gemm(1, 384, 1536),
          Gemm(1, 384, 1536, true),
          Gemm(1, 4096, 4096),
          Convolution(3, 320, 320, 16, 3, 2),
          Convolution(16, 160, 160, 16, 1, 1),
          Convolution(16, 160, 160, 64, 1, 1),
          Convolution(64, 80, 80, 24, 1, 1),
          Convolution(72, 40, 40, 120, 1, 1),
          Convolution(240, 20, 20, 80, 1, 1),
          Convolution(480, 10, 10, 480, 1, 1),
          Convolution(16, 160, 160, 16, 3, 1, true),
          Convolution(64, 160, 160, 64, 3, 2, true),
          Convolution(120, 40, 40, 120, 5, 1, true),
          Convolution(480, 10, 10, 480, 5, 1, true),
          Convolution(96, 80, 80, 24, 3, 1),
          Convolution(3, 48, 320, 32, 3, 2),
          Convolution(32, 24, 160, 64, 1, 1)};
}

std::vector<float> Values(const TensorDesc& tensor) {
  std::vector<float> values(ElementCount(tensor));
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  }
  return values;
}

// Returns the microseconds that it took.
using Call = std::function<double()>;

template <typename Function>
double Microseconds(Function function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

Call OurCall(Device& device, const OperatorDesc& desc,
             const std::vector<std::vector<float>>& inputs) {
  const auto compiled = device.Compile(ProgramOf(desc)).value();
  Bindings bindings;
  for (const std::vector<float>& input : inputs) {
    auto buffer = device.Allocate(input.size() * sizeof(float), Residency::kUpload).value();
    std::memcpy(buffer->bytes().data(), input.data(), input.size() * sizeof(float));
    bindings.inputs.push_back(std::move(buffer));
  }
  bindings.outputs.push_back(
      device.Allocate(RequiredBytes(*desc.outputs[0]), Residency::kReadback).value());
  return [&device, compiled, bindings] {
    return absl::ToDoubleMicroseconds(device.RunAndWait(compiled, bindings).value().executed);
  };
}

#ifdef OPMILL_HAS_OPENBLAS
Call OpenBlasCall(const OperatorDesc& desc, const std::vector<std::vector<float>>& inputs) {
  if (desc.schema != &kGemmSchema) return nullptr;
  const GemmDesc gemm = GemmDesc::From(desc);
  const int m = static_cast<int>(gemm.output->sizes[0]);
  const int n = static_cast<int>(gemm.output->sizes[1]);
  const int k = static_cast<int>(gemm.a.sizes[1]);
  const bool trans_b = gemm.trans_b == MatrixTransform::kTranspose;
  auto output = std::make_shared<std::vector<float>>(static_cast<size_t>(m) * n);
  return [=, &inputs] {
    return Microseconds([&] {
      cblas_sgemm(101, 111, trans_b ? 112 : 111, m, n, k, 1.0f, inputs[0].data(), k,
                  inputs[1].data(), trans_b ? k : n, 0.0f, output->data(), n);
    });
  };
}
#endif

#ifdef OPMILL_HAS_ONEDNN
using dnnl::memory;

memory::dims DimsOf(const std::vector<uint32_t>& sizes) { return {sizes.begin(), sizes.end()}; }

// The filter in oneDNN's own format, as a framework keeps it; tensors in the callers' format.
Call OneDnnCall(const OperatorDesc& desc, const std::vector<std::vector<float>>& inputs) {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  const auto plain = [&](const std::vector<uint32_t>& sizes) {
    return memory::desc(DimsOf(sizes), memory::data_type::f32,
                        sizes.size() == 2 ? memory::format_tag::ab : memory::format_tag::abcd);
  };
  const auto bind = [&](const memory::desc& md, const std::vector<float>& values) {
    return memory(md, engine, const_cast<float*>(values.data()));
  };
  const memory output(plain(desc.outputs[0]->sizes), engine);
  if (desc.schema == &kGemmSchema) {
    const bool trans_b = GemmDesc::From(desc).trans_b == MatrixTransform::kTranspose;
    std::vector<uint32_t> sizes = desc.inputs[1].sizes;
    if (trans_b) std::swap(sizes[0], sizes[1]);
    const memory::desc b(DimsOf(sizes), memory::data_type::f32,
                         trans_b ? memory::format_tag::ba : memory::format_tag::ab);
    const dnnl::matmul::primitive_desc pd({plain(desc.inputs[0].sizes), b, output.get_desc()},
                                          engine);
    const dnnl::matmul primitive(pd);
    const std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, bind(plain(desc.inputs[0].sizes), inputs[0])},
        {DNNL_ARG_WEIGHTS, bind(b, inputs[1])},
        {DNNL_ARG_DST, output}};
    return [=] {
      return Microseconds([&] {
        primitive.execute(stream, arguments);
        stream.wait();
      });
    };
  }
  const ConvolutionDesc convolution = ConvolutionDesc::From(desc);
  memory::dims filter = DimsOf(desc.inputs[1].sizes);
  const memory::dim groups = convolution.group_count;
  memory::format_tag filter_tag = memory::format_tag::abcd;
  if (groups > 1) {
    filter[0] /= groups;
    filter.insert(filter.begin(), groups);
    filter_tag = memory::format_tag::abcde;
  }
  const memory::desc any(filter, memory::data_type::f32, memory::format_tag::any);
  const memory::desc bias({static_cast<memory::dim>(desc.inputs[2].sizes[1])},
                          memory::data_type::f32, memory::format_tag::a);
  const dnnl::convolution_forward::primitive_desc pd(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
       plain(desc.inputs[0].sizes), any, bias, output.get_desc(), DimsOf(convolution.strides),
       DimsOf(convolution.start_padding), DimsOf(convolution.end_padding)},
      engine);
  const memory weights(pd.weights_desc(), engine);
  memory given = bind(memory::desc(filter, memory::data_type::f32, filter_tag), inputs[1]);
  memory weights_copy = weights;
  dnnl::reorder(given, weights_copy).execute(stream, given, weights_copy);
  const dnnl::convolution_forward primitive(pd);
  const std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, bind(plain(desc.inputs[0].sizes), inputs[0])},
      {DNNL_ARG_WEIGHTS, weights},
      {DNNL_ARG_BIAS, bind(bias, inputs[2])},
      {DNNL_ARG_DST, output}};
  return [=] {
    return Microseconds([&] {
      primitive.execute(stream, arguments);
      stream.wait();
    });
  };
}
#endif

double ProductsOf(const OperatorDesc& desc) {
  const double outputs = static_cast<double>(ElementCount(*desc.outputs[0]));
  if (desc.schema == &kGemmSchema) return outputs * GemmDesc::From(desc).a.sizes.back();
  const std::vector<uint32_t>& filter = desc.inputs[1].sizes;
  return outputs * filter[1] * filter[2] * filter[3];
}

void Measure(Device& device, const Row& row) {
  const OperatorDesc desc = Validate(row.desc).value();
  std::vector<std::vector<float>> inputs;
  for (const TensorDesc& input : desc.inputs) inputs.push_back(Values(input));
  std::vector<std::pair<const char*, Call>> calls = {{"ours", OurCall(device, desc, inputs)}};
#ifdef OPMILL_HAS_OPENBLAS
  calls.emplace_back("openblas", OpenBlasCall(desc, inputs));
#endif
#ifdef OPMILL_HAS_ONEDNN
  calls.emplace_back("onednn", OneDnnCall(desc, inputs));
#endif
  std::vector<std::vector<double>> times(calls.size());
  for (const auto& [name, call] : calls) {
    if (call != nullptr) call();
  }
  const bool is_long = ProductsOf(desc) > 1e10;
  const uint32_t rounds = is_long ? 3 : absl::GetFlag(FLAGS_rounds);
  for (uint32_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].second == nullptr) continue;
      // Short calls follow one another, so that each has its own data in the caches, and the
      // waiting threads of another library have gone to sleep.
      absl::SleepFor(absl::Milliseconds(50));
      calls[i].second();
      const int repeats = is_long ? 1 : 10;
      for (int r = 0; r < repeats; ++r) times[i].push_back(calls[i].second());
    }
  }
  std::printf("%-40s", row.name.c_str());
  double best_other = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (times[i].empty()) {
      std::printf(" | %-8s %26s", calls[i].first, "");
      continue;
    }
    std::sort(times[i].begin(), times[i].end());
    const double least = times[i][0];
    const double median = times[i][times[i].size() / 2];
    if (i > 0) best_other = best_other == 0 ? least : std::min(best_other, least);
    std::printf(" | %-8s %8.0f us %8.0f %5.0f", calls[i].first, least, median,
                2e-3 * ProductsOf(desc) / least);
  }
  if (best_other > 0) std::printf(" | %.2f", best_other / times[0][0]);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const uint32_t threads = absl::GetFlag(FLAGS_threads);
#ifdef OPMILL_HAS_OPENBLAS
  openblas_set_num_threads(static_cast<int>(threads));
#endif
  const auto device = opmill::CreateCpuDevice({.threads = threads});
  std::printf("least time, median, GFLOP/s of the least time; times as fast as the better other\n");
  for (const opmill::Row& row : opmill::Rows()) {
    if (row.name.find(absl::GetFlag(FLAGS_only)) == std::string::npos) continue;
    opmill::Measure(*device, row);
  }
  return 0;
}
