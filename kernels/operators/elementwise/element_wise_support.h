// The types, ranks and attributes of the rows in element_wise_rows.inc, from DirectML's pages.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_SUPPORT_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_SUPPORT_H_

#include "kernels/descriptor/operator_schema.h"

namespace opmill {

using enum DataType;
using enum FeatureLevel;

inline constexpr DataTypeSet kSignedTypes = kFloats | DataTypeSet{kInt32, kInt16, kInt8};
inline constexpr DataTypeSet kUnsignedTypes = {kUint32, kUint16, kUint8};
inline constexpr DataTypeSet kWordTypes = kFloats | kIntegers32;
inline constexpr DataTypeSet kBooleans = {kUint32, kUint8};
inline constexpr DataTypeSet kByte = {kUint8};

inline constexpr FeatureLevelRow kFloat1Rows[] = {{k3_0, 1, 8, kFloats}, {k1_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kFloat2Rows[] = {{k3_0, 1, 8, kFloats}, {k2_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kFloat21Rows[] = {{k3_0, 1, 8, kFloats}, {k2_1, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kFloat3Rows[] = {{k3_0, 1, 8, kFloats}};
inline constexpr FeatureLevelRow kReluGradRows[] = {{k3_1, 1, 8, kFloats}, {k3_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kFloat31Rows[] = {{k3_1, 1, 8, kFloats}};
inline constexpr FeatureLevelRow kFloat51Rows[] = {{k5_1, 1, 8, kFloats}};
inline constexpr FeatureLevelRow kFloat62Rows[] = {{k6_2, 1, 8, kFloats}};
inline constexpr FeatureLevelRow kActivationRows[] = {
    {k3_0, 1, 8, kFloats}, {k2_0, 4, 5, kFloats}, {k1_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kArithmeticRows[] = {{k5_1, 1, 8, kTenTypes},
                                                      {k4_1, 1, 8, kWordTypes | kIntegers64},
                                                      {k3_0, 1, 8, kWordTypes},
                                                      {k2_1, 4, 5, kWordTypes},
                                                      {k1_0, 4, 5, kFloats}};
inline constexpr FeatureLevelRow kIdentityRows[] = {{k4_1, 1, 8, kTenTypes},
                                                    {k3_0, 1, 8, kEightTypes},
                                                    {k2_1, 4, 5, kEightTypes},
                                                    {k1_0, 4, 5, kFloats}};
inline constexpr FeatureLevelRow kSignedRows[] = {{k4_1, 1, 8, kSignedTypes | DataTypeSet{kInt64}},
                                                  {k3_0, 1, 8, kSignedTypes},
                                                  {k2_1, 4, 4, kSignedTypes},
                                                  {k1_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kSignRows[] = {{k4_1, 1, 8, kTenTypes},
                                                {k3_0, 1, 8, kEightTypes},
                                                {k2_1, 4, 4, kEightTypes},
                                                {k2_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kNegateRows[] = {{k5_0, 1, 8, kSignedTypes | DataTypeSet{kInt64}}};
inline constexpr FeatureLevelRow kDivideRows[] = {{k6_0, 1, 8, kTenTypes},
                                                  {k5_1, 1, 8, kEightTypes},
                                                  {k3_0, 1, 8, kWordTypes},
                                                  {k2_1, 4, 4, kWordTypes},
                                                  {k1_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kExtremeRows[] = {{k5_0, 1, 8, kTenTypes},
                                                   {k3_0, 1, 8, kEightTypes},
                                                   {k2_1, 4, 4, kEightTypes},
                                                   {k1_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kMeanRows[] = {
    {k3_0, 1, 8, kWordTypes}, {k2_1, 4, 4, kWordTypes}, {k1_0, 4, 4, kFloats}};
inline constexpr FeatureLevelRow kModulusRows[] = {
    {k6_0, 1, 8, kTenTypes}, {k3_0, 1, 8, kEightTypes}, {k2_1, 4, 4, kEightTypes}};
inline constexpr FeatureLevelRow kDifferenceRows[] = {{k3_1, 1, 8, kWordTypes}};
inline constexpr FeatureLevelRow kEqualsRows[] = {{k4_1, 1, 8, kTenTypes, kBooleans},
                                                  {k3_0, 1, 8, kEightTypes, kBooleans},
                                                  {k2_1, 4, 4, kEightTypes, kBooleans},
                                                  {k2_0, 4, 4, kFloats, kBooleans},
                                                  {k1_0, 4, 4, kFloats, {kUint32}}};
inline constexpr FeatureLevelRow kOrEqualRows[] = {{k4_1, 1, 8, kTenTypes, kBooleans},
                                                   {k3_0, 1, 8, kEightTypes, kBooleans}};
inline constexpr FeatureLevelRow kLogicalRows[] = {
    {k3_0, 1, 8, kBooleans}, {k2_0, 4, 4, kBooleans}, {k1_0, 4, 4, {kUint32}}};
inline constexpr FeatureLevelRow kIsNanRows[] = {{k3_0, 1, 8, kFloats, kByte},
                                                 {k2_0, 4, 4, kFloats, kByte}};
inline constexpr FeatureLevelRow kIsInfinityRows[] = {{k3_0, 1, 8, kFloats, kByte},
                                                      {k2_1, 4, 4, kFloats, kByte}};
inline constexpr FeatureLevelRow kBitRows[] = {{k4_1, 1, 8, kTenTypes},
                                               {k3_0, 1, 8, kUnsignedTypes}};
inline constexpr FeatureLevelRow kShiftRows[] = {
    {k4_1, 1, 8, kUnsignedTypes | DataTypeSet{kUint64}},
    {k3_0, 1, 8, kUnsignedTypes},
    {k2_1, 4, 4, kUnsignedTypes}};
inline constexpr FeatureLevelRow kBitCountRows[] = {{k4_1, 1, 8, kTenTypes, kBooleans},
                                                    {k3_0, 1, 8, kUnsignedTypes, kBooleans}};
inline constexpr FeatureLevelRow kIfRows[] = {{k5_0, 1, 8, kTenTypes, {}, kByte},
                                              {k3_0, 1, 8, kEightTypes, {}, kByte},
                                              {k2_0, 4, 4, {kFloat16}, {}, kByte}};
inline constexpr DataTypeSet kCast1Types = kFloats | DataTypeSet{kInt16, kInt8, kUint16, kUint8};
inline constexpr FeatureLevelRow kCastRows[] = {{k3_1, 1, 8, kTenTypes, kTenTypes},
                                                {k3_0, 4, 4, kTenTypes, kTenTypes},
                                                {k1_0, 4, 4, kCast1Types, kCast1Types}};
inline constexpr FeatureLevelRow kReluRows[] = {{k5_1, 1, 8, kSignedTypes},
                                                {k3_0, 1, 8, kFloats},
                                                {k2_0, 4, 5, kFloats},
                                                {k1_0, 4, 4, kFloats}};

constexpr AttributeSchema FloatAttribute(absl::string_view name, absl::string_view default_text) {
  return {.name = name, .kind = AttributeKind::kFloat, .default_text = default_text};
}
inline constexpr absl::string_view kRoundingModes[] = {"HALVES_TO_NEAREST_EVEN", "TOWARD_ZERO",
                                                       "TOWARD_INFINITY"};
inline constexpr absl::string_view kInfinityModes[] = {"EITHER", "POSITIVE", "NEGATIVE"};

// Whether the parameters of an expression are a mode, not numbers.
constexpr bool HasMode(absl::Span<const AttributeSchema> attributes) {
  return !attributes.empty() && attributes[0].kind == AttributeKind::kChoice;
}

inline constexpr absl::Span<const AttributeSchema> kNone = {};
inline constexpr AttributeSchema kExponent[] = {FloatAttribute("exponent", "")};
inline constexpr AttributeSchema kMinimum[] = {FloatAttribute("min", "")};
inline constexpr AttributeSchema kMinMax[] = {{.name = "min", .kind = AttributeKind::kScalar},
                                              {.name = "max", .kind = AttributeKind::kScalar}};
inline constexpr AttributeSchema kRoundingMode[] = {{.name = "rounding_mode",
                                                     .kind = AttributeKind::kChoice,
                                                     .choices = kRoundingModes,
                                                     .default_text = "HALVES_TO_NEAREST_EVEN"}};
inline constexpr AttributeSchema kInfinityMode[] = {{.name = "infinity_mode",
                                                     .kind = AttributeKind::kChoice,
                                                     .choices = kInfinityModes,
                                                     .default_text = "EITHER"}};
inline constexpr AttributeSchema kAlpha1[] = {FloatAttribute("alpha", "1")};
inline constexpr AttributeSchema kSmallAlpha[] = {FloatAttribute("alpha", "0.01")};
inline constexpr AttributeSchema kLinear[] = {FloatAttribute("alpha", "1"),
                                              FloatAttribute("beta", "0")};
inline constexpr AttributeSchema kHardSigmoid[] = {FloatAttribute("alpha", "0.2"),
                                                   FloatAttribute("beta", "0.5")};
inline constexpr AttributeSchema kHardSwish[] = {FloatAttribute("alpha", "0.16666667"),
                                                 FloatAttribute("beta", "0.5")};
inline constexpr AttributeSchema kParametric[] = {FloatAttribute("alpha", "1"),
                                                  FloatAttribute("beta", "1")};
inline constexpr AttributeSchema kScaledElu[] = {FloatAttribute("alpha", "1.6732632"),
                                                 FloatAttribute("gamma", "1.050701")};
inline constexpr AttributeSchema kScaledTanh[] = {FloatAttribute("alpha", "1"),
                                                  FloatAttribute("beta", "0.5")};
inline constexpr AttributeSchema kShrink[] = {FloatAttribute("bias", "0"),
                                              FloatAttribute("threshold", "0.5")};
inline constexpr AttributeSchema kSteepness[] = {FloatAttribute("steepness", "1")};
inline constexpr AttributeSchema kSwish[] = {FloatAttribute("sigmoid_input_scale", "1")};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_SUPPORT_H_
