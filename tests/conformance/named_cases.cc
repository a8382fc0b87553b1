#include "tests/conformance/named_cases.h"

namespace opmill {
namespace {

constexpr NamedCase kRegressions[] = {
    // Folding 16 slots in one chain took vkd3d's compiler exponential time.
    {"FoldsSixteenSlotsInBearableTime",
     "argmax input=UINT8[2,4097] output=UINT32[2,1] axes=1 axis_direction=INCREASING "
     "values=random_bits seed=1 view=134217728 groups=16 threads=64"},
    // An unrolled loop over Combine(states[i], states[i + 8]) was miscompiled.
    {"FoldsSixteenSlotsOfShiftedRows",
     "argmin input=INT8[7,1,1023] output=UINT32[7,1,1] axes=2 axis_direction=INCREASING "
     "values=random_bits seed=1 view=134217728 groups=16 threads=64"},
    {"FoldsEightSlotsFromTheLast",
     "argmax input=FLOAT16[5] output=UINT32[1] axes=0 axis_direction=DECREASING "
     "values=ties seed=1 view=134217728 groups=16 threads=64"},
    // An item of a shifted row without elements was treated as one with the least key.
    {"SkipsItemsWithoutElements",
     "argmax input=INT8[3,5,17]/[1024,32,1] output=UINT32[3,1,1] axes=1,2 "
     "axis_direction=DECREASING "
     "values=ties seed=1 view=134217728 groups=1 threads=8"},
    // A driver transformed x * 2^-32 + y * 2^-32 into (x + y) * 2^-32, which overflows.
    {"ScalesBeforeItAdds",
     "reduce input=FLOAT32[70001] function=AVERAGE output=FLOAT32[1] axes=0 values=extremes seed=4 "
     "view=134217728 groups=64 threads=8"},
    // Blocks of rows, remainders of blocks, and lanes beyond the last column.
    {"WalksColumnsAcrossVectors",
     "argmax input=FLOAT32[75,515] output=UINT32[1,515] axes=0 axis_direction=INCREASING "
     "values=ties seed=1 view=134217728 groups=1 threads=8"},
    // Groups that only fill the grid overwrote the results of the first ones.
    {"StoresColumnsOfMoreGroupsThanARow",
     "reduce input=FLOAT32[2,524296]/[1048592,2] function=SUM output=FLOAT32[1,524296] axes=0 "
     "values=ties seed=1 view=134217728 groups=64 threads=8"},
    {"StoresColumnsOfMoreGroupsThanARowInTurns",
     "reduce input=FLOAT32[2,1048592]/[2097184,2] function=SUM output=FLOAT32[1,1048592] axes=0 "
     "values=ties seed=1 view=134217728 groups=65536 threads=8"},
    // vkd3d's compiler replaced both results of a vector by the second one.
    {"TellsTheColumnsOfAWideVectorApart",
     "reduce input=UINT64[5,2] function=MAX output=UINT64[1,2] axes=0 values=descending seed=1 "
     "view=134217728 groups=64 threads=8"},
    // A sequence split into parts shorter than its tile, with a tile shorter than k.
    {"SortsPartsShorterThanATile",
     "top_k input=INT64[2,1,1023] output_values=INT64[2,1,1023] output_indices=UINT32[2,1,1023] "
     "axis=0 k=2 "
     "axis_direction=DECREASING values=random_bits seed=1 view=1024 groups=16 threads=64"},
};

constexpr NamedCase kSetsOfAxes[] = {
    {"NoAxesOfArgMin",
     "argmin input=FLOAT32[5,67] output=UINT32[5,67] axes= axis_direction=INCREASING "
     "values=rare_nans seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfArgMax",
     "argmax input=INT8[3,5,17]/[1024,32,1] output=INT64[3,5,17] axes= "
     "axis_direction=DECREASING values=ties seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfReduceArgMax",
     "reduce input=UINT64[33] function=ARGMAX output=INT32[33] axes= values=random_bits seed=1 "
     "view=134217728 groups=64 threads=8"},
    {"NoAxesOfAverage",
     "reduce input=FLOAT16[4,129] function=AVERAGE output=FLOAT16[4,129] axes= values=numbers "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfL1",
     "reduce input=INT64[4,129] function=L1 output=INT64[4,129] axes= values=random_bits "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfL2",
     "reduce input=FLOAT32[4,129] function=L2 output=FLOAT32[4,129] axes= values=numbers "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfLogSum",
     "reduce input=FLOAT32[4,129] function=LOG_SUM output=FLOAT32[4,129] axes= values=numbers "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfLogSumExp",
     "reduce input=FLOAT16[4,129] function=LOG_SUM_EXP output=FLOAT16[4,129] axes= "
     "values=numbers seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfMax",
     "reduce input=FLOAT32[4,129] function=MAX output=FLOAT32[4,129] axes= values=random_bits "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfMin",
     "reduce input=FLOAT16[4,129] function=MIN output=FLOAT16[4,129] axes= values=random_bits "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfMultiply",
     "reduce input=INT32[4,129] function=MULTIPLY output=INT32[4,129] axes= values=random_bits "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfSum",
     "reduce input=FLOAT32[4,129] function=SUM output=FLOAT32[4,129] axes= values=numbers "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfSumSquare",
     "reduce input=UINT32[4,129] function=SUM_SQUARE output=UINT32[4,129] axes= "
     "values=random_bits seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfATransposedReduce",
     "reduce input=FLOAT32[64,33]/[1,64] function=SUM output=FLOAT32[64,33] axes= "
     "values=numbers seed=1 view=134217728 groups=64 threads=8"},
    {"NoAxesOfHardmax",
     "hardmax input=FLOAT32[6,75] output=FLOAT32[6,75] axes= values=rare_nans seed=1 "
     "view=134217728 groups=64 threads=8"},
    {"NoAxesOfHardmaxWithGaps",
     "hardmax input=FLOAT16[6,75]/[1,6] output=FLOAT16[6,75]/[100,1] axes= values=specials "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"RepeatedAxesOfArgMax",
     "argmax input=FLOAT32[5,67,3] output=UINT32[1,67,1] axes=2,0,2,2,0 "
     "axis_direction=DECREASING values=ties seed=1 view=134217728 groups=64 threads=8"},
    {"RepeatedAxesOfReduce",
     "reduce input=INT32[9,257] function=SUM output=INT32[9,1] axes=1,1 values=random_bits "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"RepeatedAxesOfReduceArgMin",
     "reduce input=INT16[9,257] function=ARGMIN output=UINT32[1,257] axes=0,0,0 values=ties "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"RepeatedAxesOfHardmax",
     "hardmax input=FLOAT16[9,257] output=FLOAT16[9,257] axes=1,0,1,0,1,0,1,0,1,0 values=ties "
     "seed=1 view=134217728 groups=64 threads=8"},
};

constexpr NamedCase kAdditions[] = {
    {"AddsNansToOneQuietNan",
     "element_wise_add a=FLOAT32[1023] b=FLOAT32[1023] output=FLOAT32[1023] values=rare_nans "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"AddsOppositeInfinitiesOfHalves",
     "element_wise_add a=FLOAT16[4,255]/[1,4] b=FLOAT16[4,255] output=FLOAT16[4,255] "
     "values=specials seed=1 view=134217728 groups=64 threads=8"},
    {"AddsZerosOfEitherSign",
     "element_wise_add a=FLOAT32[1023] b=FLOAT32[1023] output=FLOAT32[1023] values=zeros seed=1 "
     "view=134217728 groups=64 threads=8"},
    {"AddsZerosOfEitherSignOfHalves",
     "element_wise_add a=FLOAT16[1023] b=FLOAT16[1023] output=FLOAT16[1023] values=zeros seed=1 "
     "view=134217728 groups=64 threads=8"},
    {"AddsDenormals",
     "element_wise_add a=FLOAT32[1023] b=FLOAT32[1023] output=FLOAT32[1023] values=denormals "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"AddsDenormalsOfHalves",
     "element_wise_add a=FLOAT16[1023] b=FLOAT16[1023] output=FLOAT16[1023] values=denormals "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"AddsHalvesPastTheLargest",
     "element_wise_add a=FLOAT16[1023] b=FLOAT16[1023] output=FLOAT16[1023] values=overflow "
     "seed=1 view=134217728 groups=64 threads=8"},
    {"WrapsBytesWithoutCarryIntoTheNext",
     "element_wise_add a=INT8[1023] b=INT8[1023] output=INT8[1023] values=extremes seed=1 "
     "view=134217728 groups=64 threads=8"},
    {"WrapsShortsWithoutCarryIntoTheNext",
     "element_wise_add a=UINT16[1023] b=UINT16[1023] output=UINT16[1023] values=extremes seed=1 "
     "view=134217728 groups=64 threads=8"},
    // Large enough to be split into several submissions.
    {"AddsInPartsOfADispatch",
     "element_wise_add a=FLOAT32[4194305] b=FLOAT32[4194305] output=FLOAT32[4194305] "
     "values=random_bits seed=1 view=134217728 groups=64 threads=8"},
    {"AddsInPartsOfADispatchAsHardware",
     "element_wise_add a=INT64[2,700001]/[1,2] b=INT64[2,700001] output=INT64[2,700001] "
     "values=random_bits seed=1 view=134217728 groups=512 threads=256"},
    {"CarriesIntoTheUpperWord",
     "element_wise_add a=INT64[1023] b=INT64[1023] output=INT64[1023] values=extremes seed=1 "
     "view=134217728 groups=64 threads=8"},
};

}  // namespace

absl::Span<const NamedCase> Additions() { return kAdditions; }

absl::Span<const NamedCase> SetsOfAxes() { return kSetsOfAxes; }

absl::Span<const NamedCase> Regressions() { return kRegressions; }

}  // namespace opmill
