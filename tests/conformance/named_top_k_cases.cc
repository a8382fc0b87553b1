#include "tests/conformance/named_cases.h"

namespace opmill {
namespace {

constexpr NamedCase kTopKPaths[] = {
    {"TopKOfRowsThatStartInsideVectors",
     "top_k input=FLOAT32[5,3001] output_values=FLOAT32[5,16] output_indices=UINT32[5,16] axis=1 "
     "k=16 "
     "axis_direction=DECREASING values=rare_nans seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfRowsInParts",
     "top_k input=UINT64[2,5001] output_values=UINT64[2,3] output_indices=UINT32[2,3] axis=1 k=3 "
     "axis_direction=INCREASING values=ties seed=3 view=1024 groups=64 threads=8"},
    {"TopKOfRowsByManyLanes",
     "top_k input=INT16[1,20001] output_values=INT16[1,5] output_indices=UINT32[1,5] axis=1 k=5 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfColumnsOfManyRows",
     "top_k input=FLOAT32[2,3000,160] output_values=FLOAT32[2,20,160] "
     "output_indices=UINT32[2,20,160] axis=1 k=20 axis_direction=INCREASING values=random_bits "
     "seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfColumnsAllEqual",
     "top_k input=FLOAT32[2100,64] output_values=FLOAT32[20,64] output_indices=UINT32[20,64] "
     "axis=0 k=20 axis_direction=DECREASING values=constant seed=3 view=134217728 groups=64 "
     "threads=8"},
    {"TopKOfColumnsAscending",
     "top_k input=FLOAT32[2100,64] output_values=FLOAT32[20,64] output_indices=UINT32[20,64] "
     "axis=0 k=20 axis_direction=DECREASING values=ascending seed=3 view=134217728 groups=64 "
     "threads=8"},
    {"TopKOfColumnsOfHalves",
     "top_k input=FLOAT16[3000,2,520] output_values=FLOAT16[20,2,520] "
     "output_indices=UINT32[20,2,520] axis=0 k=20 axis_direction=INCREASING values=specials "
     "seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfColumnsOfBytesInParts",
     "top_k input=INT8[3000,528] output_values=INT8[3,528] output_indices=UINT32[3,528] axis=0 k=3 "
     "axis_direction=DECREASING values=random_bits seed=3 view=65536 groups=64 threads=8"},
    {"TopKOfScatteredElements",
     "top_k input=UINT8[3000,17] output_values=UINT8[4,17] output_indices=UINT32[4,17] axis=0 k=4 "
     "axis_direction=DECREASING values=rare_infinities seed=3 view=134217728 groups=64 threads=8"},
    // About 32 results, of rows, columns and elements apart.
    {"TopKOfThirtyTwoOfColumns",
     "top_k input=FLOAT32[2100,3,24] output_values=FLOAT32[32,3,24] output_indices=UINT32[32,3,24] "
     "axis=0 k=32 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfTwentyFiveOfColumnsOfBytes",
     "top_k input=INT8[1500,48] output_values=INT8[25,48] output_indices=UINT32[25,48] axis=0 k=25 "
     "axis_direction=INCREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfAboutThirtyScatteredElementsByManyLanes",
     "top_k input=UINT64[3000,5] output_values=UINT64[31,5] output_indices=UINT64[31,5] axis=0 "
     "k=31 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfAboutThirtyOfLongRows",
     "top_k input=FLOAT32[3,8195] output_values=FLOAT32[3,24] output_indices=UINT32[3,24] axis=1 "
     "k=24 "
     "axis_direction=INCREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfAboutThirtyOfShortRows",
     "top_k input=FLOAT16[77,131] output_values=FLOAT16[77,32] output_indices=UINT32[77,32] axis=1 "
     "k=32 "
     "axis_direction=DECREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfAboutThirtyInParts",
     "top_k input=INT32[2,20001] output_values=INT32[2,29] output_indices=UINT32[2,29] axis=1 k=29 "
     "axis_direction=INCREASING values=ties seed=3 view=4096 groups=64 threads=8"},
    // Short sequences, of which a group sorts several.
    {"TopKOfShortRowsBySmallGroups",
     "top_k input=FLOAT32[2051,24] output_values=FLOAT32[2051,18] "
     "output_indices=UINT32[2051,18] axis=1 k=18 axis_direction=DECREASING values=specials "
     "seed=3 view=134217728 groups=2 threads=8"},
    {"TopKOfShortRowsThatStartInsideVectorsBySmallGroups",
     "top_k input=INT8[517,4,37] output_values=INT8[517,4,32] output_indices=UINT64[517,4,32] "
     "axis=2 k=32 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=2 threads=8"},
    {"TopKOfShortRowsIntoStrides",
     "top_k input=FLOAT16[300,7,21] output_values=FLOAT16[300,7,21]/[147,1,7] "
     "output_indices=UINT32[300,7,21]/[441,63,3] axis=2 k=21 "
     "axis_direction=INCREASING values=rare_nans seed=3 view=134217728 groups=2 threads=8"},
    {"TopKOfShortColumnsBySmallGroups",
     "top_k input=UINT64[9,1501] output_values=UINT64[5,1501] output_indices=UINT32[5,1501] axis=0 "
     "k=5 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=2 threads=8"},
    {"TopKOfShortRowsInSlices",
     "top_k input=FLOAT32[5003,20] output_values=FLOAT32[5003,17] "
     "output_indices=UINT32[5003,17] axis=1 k=17 axis_direction=DECREASING values=zeros seed=3 "
     "view=4096 groups=2 threads=8"},
    {"TopKOfShortRowsOfWhichRanksFillViews",
     "top_k input=INT16[3,900] output_values=INT16[3,31]/[4000,131] "
     "output_indices=UINT32[3,31]/[64,2] axis=1 "
     "k=31 axis_direction=INCREASING values=random_bits seed=3 view=2048 groups=2 threads=8"},
    // A few of short sequences, each of which a lane walks, or of chunks of columns.
    {"TopKWalksRowsThatStartInsideVectors",
     "top_k input=INT8[517,4,37] output_values=INT8[517,4,16] output_indices=UINT64[517,4,16] "
     "axis=2 k=16 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=2 threads=8"},
    {"TopKWalksHalvesIntoStrides",
     "top_k input=FLOAT16[300,7,21] output_values=FLOAT16[300,7,5]/[147,1,7] "
     "output_indices=UINT32[300,7,5]/[441,63,3] axis=2 k=5 "
     "axis_direction=DECREASING values=rare_nans seed=3 view=134217728 groups=2 threads=8"},
    {"TopKWalksColumns",
     "top_k input=FLOAT32[200,601] output_values=FLOAT32[9,601] output_indices=UINT32[9,601] "
     "axis=0 "
     "k=9 "
     "axis_direction=DECREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKWalksColumnsOfBytesAllEqual",
     "top_k input=UINT8[256,3,333] output_values=UINT8[4,3,333] output_indices=UINT32[4,3,333] "
     "axis=0 k=4 "
     "axis_direction=DECREASING values=constant seed=3 view=134217728 groups=64 threads=8"},
    {"TopKWalksZerosOfEitherSign",
     "top_k input=FLOAT32[701,256] output_values=FLOAT32[701,1] output_indices=UINT32[701,1] "
     "axis=1 "
     "k=1 "
     "axis_direction=INCREASING values=zeros seed=3 view=134217728 groups=64 threads=8"},
    {"TopKWalksAllOfRowsOfExtremes",
     "top_k input=INT32[703,16] output_values=INT32[703,16] output_indices=UINT32[703,16] axis=1 "
     "k=16 "
     "axis_direction=DECREASING values=extremes seed=3 view=134217728 groups=64 threads=8"},
    {"TopKWalksRowsInSlices",
     "top_k input=FLOAT32[5003,8] output_values=FLOAT32[5003,3] output_indices=UINT32[5003,3] "
     "axis=1 k=3 axis_direction=DECREASING values=zeros seed=3 view=4096 groups=2 threads=8"},
    {"TopKWalksRowsOfNansThatStartInsideVectors",
     "top_k input=FLOAT32[167,3,61] output_values=FLOAT32[167,3,7] "
     "output_indices=UINT32[167,3,7] axis=2 k=7 axis_direction=INCREASING values=specials "
     "seed=3 view=134217728 groups=16 threads=8"},
    {"TopKWalksElementsThatAreApart",
     "top_k input=UINT32[300,40]/[160,4] output_values=UINT32[300,12] "
     "output_indices=UINT64[300,12] axis=1 k=12 axis_direction=DECREASING values=ties seed=3 "
     "view=134217728 groups=16 threads=8"},
    {"TopKWalksListsOfRows",
     "top_k input=FLOAT16[90,5000] output_values=FLOAT16[90,3] output_indices=UINT32[90,3] "
     "axis=1 k=3 axis_direction=INCREASING values=ties seed=3 view=134217728 groups=16 threads=8"},
    {"TopKWalksChunksOfColumns",
     "top_k input=FLOAT32[3,1003,160] output_values=FLOAT32[3,10,160] "
     "output_indices=UINT32[3,10,160] axis=1 k=10 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKWalksChunksOfColumnsOfHalvesAllEqual",
     "top_k input=FLOAT16[773,3,64] output_values=FLOAT16[13,3,64] output_indices=UINT64[13,3,64] "
     "axis=0 k=13 "
     "axis_direction=INCREASING values=constant seed=3 view=134217728 groups=64 threads=8"},
    {"TopKWalksChunksOfColumnsThatEndShort",
     "top_k input=INT16[4097,77] output_values=INT16[16,77] output_indices=UINT32[16,77] axis=0 "
     "k=16 axis_direction=INCREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKWalksChunksOfColumnsInParts",
     "top_k input=INT16[3000,528] output_values=INT16[9,528] output_indices=UINT32[9,528] "
     "axis=0 k=9 axis_direction=DECREASING values=random_bits seed=3 view=16384 groups=64 "
     "threads=8"},
    {"TopKWalksListsOfColumns",
     "top_k input=FLOAT32[3,1003,160] output_values=FLOAT32[3,6,160] "
     "output_indices=UINT64[3,6,160] axis=1 k=6 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=16 threads=8"},
    {"TopKWalksListsOfColumnsOfShorts",
     "top_k input=UINT16[900,480] output_values=UINT16[11,480] output_indices=UINT32[11,480] "
     "axis=0 k=11 axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=16 "
     "threads=8"},
    {"TopKWalksElementsThatTheInputRepeats",
     "top_k input=UINT16[300,40]/[3,0] output_values=UINT16[300,3] output_indices=UINT32[300,3] "
     "axis=1 k=3 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=2 threads=8"},
    {"TopKWalksRowsOfWhichRanksFillViews",
     "top_k input=INT16[40,100] output_values=INT16[40,16]/[4000,211] "
     "output_indices=UINT32[40,16]/[64,2] axis=1 k=16 axis_direction=INCREASING "
     "values=random_bits seed=3 view=2048 groups=2 threads=8"},
    {"TopKWalksWideRowsOfExtremes",
     "top_k input=INT64[513,2,33] output_values=INT64[513,2,14] output_indices=UINT64[513,2,14] "
     "axis=2 k=14 axis_direction=INCREASING values=extremes seed=3 view=134217728 groups=2 "
     "threads=8"},
    {"TopKWalksWideColumns",
     "top_k input=UINT64[256,301] output_values=UINT64[5,301]/[1,7] "
     "output_indices=UINT32[5,301]/[903,3] axis=0 k=5 axis_direction=DECREASING values=ties seed=3 "
     "view=134217728 groups=16 threads=8"},
    {"TopKWalksWideListsOfColumns",
     "top_k input=INT64[900,160] output_values=INT64[16,160] output_indices=UINT32[16,160] axis=0 "
     "k=16 axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=8 threads=8"},
    {"TopKWalksWideListsOfRows",
     "top_k input=UINT64[90,5000] output_values=UINT64[90,2] output_indices=UINT32[90,2] axis=1 "
     "k=2 axis_direction=INCREASING values=constant seed=3 view=134217728 groups=16 threads=8"},
    {"TopKWalksChunksOfColumnsOfBytes",
     "top_k input=INT8[2,700,75] output_values=INT8[2,11,75] output_indices=UINT32[2,11,75] axis=1 "
     "k=11 axis_direction=INCREASING values=ties seed=3 view=134217728 groups=16 threads=8"},
    // Many results of short sequences: rows that start at vectors and within them, elements apart,
    // with strides, and in slices.
    {"TopKRanksOfRows",
     "top_k input=FLOAT32[37,128] output_values=FLOAT32[37,128] output_indices=UINT32[37,128] "
     "axis=1 k=128 "
     "axis_direction=DECREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKRanksOfRowsThatStartInsideVectors",
     "top_k input=INT8[29,3,53] output_values=INT8[29,3,47] output_indices=UINT64[29,3,47] axis=2 "
     "k=47 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKRanksOfHalvesThatStartInsideVectors",
     "top_k input=FLOAT16[5,2,301] output_values=FLOAT16[5,2,300] output_indices=UINT32[5,2,300] "
     "axis=2 k=300 "
     "axis_direction=INCREASING values=rare_nans seed=3 view=134217728 groups=64 threads=8"},
    {"TopKRanksOfExtremes",
     "top_k input=INT32[9,131] output_values=INT32[9,131] output_indices=UINT32[9,131] axis=1 "
     "k=131 "
     "axis_direction=DECREASING values=extremes seed=3 view=134217728 groups=64 threads=8"},
    {"TopKRanksOfWideElementsAllEqual",
     "top_k input=UINT64[11,135] output_values=UINT64[11,99] output_indices=UINT32[11,99] axis=1 "
     "k=99 "
     "axis_direction=INCREASING values=constant seed=3 view=134217728 groups=64 threads=8"},
    {"TopKRanksOfColumnsBySmallGroups",
     "top_k input=INT64[65,2100] output_values=INT64[64,2100] output_indices=UINT32[64,2100] "
     "axis=0 k=64 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=2 threads=8"},
    {"TopKRanksIntoStrides",
     "top_k input=FLOAT32[13,7,41]/[600,1,11] output_values=FLOAT32[13,7,35]/[245,1,7] "
     "output_indices=UINT32[13,7,35]/[800,105,3] axis=2 k=35 "
     "axis_direction=INCREASING values=zeros seed=3 view=134217728 groups=64 threads=8"},
    {"TopKRanksInSlices",
     "top_k input=FLOAT32[503,70] output_values=FLOAT32[503,60] output_indices=UINT32[503,60] "
     "axis=1 k=60 "
     "axis_direction=DECREASING values=numbers seed=3 view=4096 groups=64 threads=8"},
    {"TopKRanksOfManyEqualInManyBlocks",
     "top_k input=FLOAT32[3,1027] output_values=FLOAT32[3,1000] output_indices=UINT32[3,1000] "
     "axis=1 k=1000 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKRanksOfManyWideEqualInManyBlocks",
     "top_k input=INT64[3,701] output_values=INT64[3,690] output_indices=UINT32[3,690] axis=1 "
     "k=690 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfShortRowsOfWhichManyRanksFillViews",
     "top_k input=INT16[3,100] output_values=INT16[3,40]/[4000,131] "
     "output_indices=UINT32[3,40]/[80,2] axis=1 "
     "k=40 axis_direction=INCREASING values=random_bits seed=3 view=2048 groups=2 threads=8"},
    {"TopKRanksByManyLanes",
     "top_k input=UINT8[19,400] output_values=UINT8[19,200] output_indices=UINT32[19,200] axis=1 "
     "k=200 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=512 threads=256"},
    // Many results of whole chunks, which buckets or a sort rank.
    {"TopKOfAThousand",
     "top_k input=FLOAT32[3,8192] output_values=FLOAT32[3,1000] output_indices=UINT32[3,1000] "
     "axis=1 "
     "k=1000 "
     "axis_direction=DECREASING values=numbers seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfAThousandBytes",
     "top_k input=INT8[2,20001] output_values=INT8[2,1000] output_indices=UINT32[2,1000] axis=1 "
     "k=1000 "
     "axis_direction=INCREASING values=random_bits seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfAThousandIfFewAreDifferent",
     "top_k input=FLOAT16[3,8199] output_values=FLOAT16[3,1000] output_indices=UINT32[3,1000] "
     "axis=1 "
     "k=1000 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfAThousandIfSomeAreFarAway",
     "top_k input=FLOAT32[3,8192] output_values=FLOAT32[3,999] output_indices=UINT32[3,999] axis=1 "
     "k=999 "
     "axis_direction=DECREASING values=rare_infinities seed=3 view=134217728 groups=512 "
     "threads=256"},
    {"TopKOfAThousandExtremes",
     "top_k input=INT32[2,8192] output_values=INT32[2,1001] output_indices=UINT32[2,1001] axis=1 "
     "k=1001 "
     "axis_direction=INCREASING values=extremes seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfAThousandOfLongRows",
     "top_k input=UINT32[2,30000] output_values=UINT32[2,1000] output_indices=UINT32[2,1000] "
     "axis=1 "
     "k=1000 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfAThousandWideElements",
     "top_k input=INT64[3,4096] output_values=INT64[3,500] output_indices=UINT32[3,500] axis=1 "
     "k=500 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=512 threads=256"},
    // More results of longer sequences.
    {"TopKManyThatEqualTheCut",
     "top_k input=UINT8[3,3001] output_values=UINT8[3,40] output_indices=UINT32[3,40] axis=1 k=40 "
     "axis_direction=INCREASING values=extremes seed=3 view=134217728 groups=64 threads=8"},
    {"TopKManyAllEqual",
     "top_k input=FLOAT32[3,4001] output_values=FLOAT32[3,50] output_indices=UINT32[3,50] axis=1 "
     "k=50 "
     "axis_direction=DECREASING values=constant seed=3 view=134217728 groups=64 threads=8"},
    {"TopKManyOfRowsThatStartInsideVectors",
     "top_k input=FLOAT32[2,6003] output_values=FLOAT32[2,150] output_indices=UINT64[2,150] axis=1 "
     "k=150 "
     "axis_direction=DECREASING values=ascending seed=3 view=134217728 groups=1 threads=8"},
    {"TopKManyWithLongStretchesBelowTheCut",
     "top_k input=FLOAT16[2,60001] output_values=FLOAT16[2,35] output_indices=UINT32[2,35] axis=1 "
     "k=35 "
     "axis_direction=INCREASING values=rare_nans seed=3 view=134217728 groups=64 threads=8"},
    {"TopKManyOfWideRowsInParts",
     "top_k input=INT64[2,5001] output_values=INT64[2,33] output_indices=UINT32[2,33] axis=1 k=33 "
     "axis_direction=DECREASING values=ties seed=3 view=2400 groups=64 threads=8"},
    {"TopKManyOfColumns",
     "top_k input=INT16[3000,2,24] output_values=INT16[41,2,24] output_indices=UINT32[41,2,24] "
     "axis=0 k=41 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKManyOfScatteredElements",
     "top_k input=FLOAT32[3000,3] output_values=FLOAT32[45,3] output_indices=UINT32[45,3] axis=0 "
     "k=45 "
     "axis_direction=INCREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKManyBySmallGroups",
     "top_k input=FLOAT16[3,50001] output_values=FLOAT16[3,90] output_indices=UINT32[3,90] axis=1 "
     "k=90 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=2 threads=8"},
    {"TopKManyOfColumnsByFewLanes",
     "top_k input=FLOAT32[3001,3,20] output_values=FLOAT32[50,3,20] output_indices=UINT32[50,3,20] "
     "axis=0 k=50 "
     "axis_direction=DECREASING values=numbers seed=3 view=134217728 groups=1 threads=8"},
    {"TopKManyInManySequences",
     "top_k input=FLOAT32[150,2001] output_values=FLOAT32[150,60] output_indices=UINT32[150,60] "
     "axis=1 k=60 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=8 threads=8"},
    {"TopKManyOfWideColumnsInManySequences",
     "top_k input=UINT64[1001,131] output_values=UINT64[35,131] output_indices=UINT32[35,131] "
     "axis=0 k=35 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=8 threads=8"},
    {"TopKManyOfColumnsInManySequences",
     "top_k input=FLOAT16[1001,136] output_values=FLOAT16[40,136] output_indices=UINT32[40,136] "
     "axis=0 k=40 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=8 threads=8"},
    {"TopKManyThatAreEqualInManySequences",
     "top_k input=INT8[77,3001] output_values=INT8[77,40] output_indices=UINT32[77,40] axis=1 k=40 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=8 threads=8"},
    {"TopKManyByManyLanes",
     "top_k input=FLOAT32[2,30001] output_values=FLOAT32[2,100] output_indices=UINT32[2,100] "
     "axis=1 k=100 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=512 threads=256"},
    // Cuts by keys, and by positions among equal keys; columns that end within vectors.
    {"TopKCutsNumbers",
     "top_k input=FLOAT32[19,5003] output_values=FLOAT32[19,300] output_indices=UINT32[19,300] "
     "axis=1 k=300 "
     "axis_direction=DECREASING values=numbers seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsZerosOfEitherSign",
     "top_k input=FLOAT32[3,5003] output_values=FLOAT32[3,300] output_indices=UINT32[3,300] axis=1 "
     "k=300 "
     "axis_direction=INCREASING values=zeros seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsHalves",
     "top_k input=FLOAT16[3,5003] output_values=FLOAT16[3,700] output_indices=UINT32[3,700] axis=1 "
     "k=700 "
     "axis_direction=DECREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsBytesByPositions",
     "top_k input=INT8[3,5003] output_values=INT8[3,900] output_indices=UINT32[3,900] axis=1 k=900 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsWideElements",
     "top_k input=UINT64[3,5003] output_values=UINT64[3,300] output_indices=UINT64[3,300] axis=1 "
     "k=300 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsWideElementsByPositions",
     "top_k input=INT64[3,5003] output_values=INT64[3,300] output_indices=UINT32[3,300] axis=1 "
     "k=300 "
     "axis_direction=INCREASING values=small_integers seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsNans",
     "top_k input=FLOAT32[3,5003] output_values=FLOAT32[3,300] output_indices=UINT32[3,300] axis=1 "
     "k=300 "
     "axis_direction=DECREASING values=rare_nans seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsOfRows",
     "top_k input=FLOAT32[9,6003] output_values=FLOAT32[9,150] output_indices=UINT64[9,150] axis=1 "
     "k=150 "
     "axis_direction=DECREASING values=ascending seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsOfWideRows",
     "top_k input=INT64[5,4001] output_values=INT64[5,77] output_indices=UINT32[5,77] axis=1 k=77 "
     "axis_direction=DECREASING values=ascending seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsOfColumns",
     "top_k input=FLOAT16[1200,5,24] output_values=FLOAT16[60,5,24] output_indices=UINT32[60,5,24] "
     "axis=0 k=60 "
     "axis_direction=DECREASING values=ascending seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsColumnsOfManyTiles",
     "top_k input=FLOAT32[3,6003,16] output_values=FLOAT32[3,40,16] output_indices=UINT32[3,40,16] "
     "axis=1 k=40 "
     "axis_direction=INCREASING values=numbers seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsColumnsThatEndInsideVectors",
     "top_k input=FLOAT32[3,1001,22]/[24024,24,1] output_values=FLOAT32[3,50,22] "
     "output_indices=UINT32[3,50,22] axis=1 k=50 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsColumnsOfBytesThatEndInsideVectors",
     "top_k input=INT8[2001,37]/[48,1] output_values=INT8[90,37] output_indices=UINT32[90,37] "
     "axis=0 k=90 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsColumnsOfWhichOneIsInTheLastVector",
     "top_k input=FLOAT16[2,2100,9]/[33600,16,1] output_values=FLOAT16[2,40,9] "
     "output_indices=UINT32[2,40,9] "
     "axis=1 k=40 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsColumnsOfBytesOfWhichOneIsInTheLastVector",
     "top_k input=INT8[2001,33]/[48,1] output_values=INT8[35,33] output_indices=UINT32[35,33] "
     "axis=0 k=35 "
     "axis_direction=INCREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKFewOfLongRows",
     "top_k input=FLOAT32[19,5003] output_values=FLOAT32[19,17] output_indices=UINT32[19,17] "
     "axis=1 k=17 "
     "axis_direction=INCREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKFewOfLongWideRows",
     "top_k input=INT64[19,3001] output_values=INT64[19,32] output_indices=UINT64[19,32] axis=1 "
     "k=32 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfThirtyOfManyRowsInParts",
     "top_k input=INT16[19,20001] output_values=INT16[19,30] output_indices=UINT32[19,30] axis=1 "
     "k=30 "
     "axis_direction=DECREASING values=ties seed=3 view=8192 groups=64 threads=8"},
    {"TopKCutsColumnsIntoStrides",
     "top_k input=FLOAT32[1001,2,12] output_values=FLOAT32[33,2,12]/[36,1190,3] "
     "output_indices=UINT64[33,2,12]/[2,900,70] axis=0 k=33 "
     "axis_direction=DECREASING values=zeros seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsScatteredElements",
     "top_k input=UINT16[3000,3] output_values=UINT16[77,3] output_indices=UINT32[77,3] axis=0 "
     "k=77 "
     "axis_direction=INCREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKCutsInfinitiesOfRowsThatStartInsideVectors",
     "top_k input=FLOAT16[9,3,3001] output_values=FLOAT16[9,3,200] output_indices=UINT32[9,3,200] "
     "axis=2 k=200 "
     "axis_direction=INCREASING values=rare_infinities seed=3 view=134217728 groups=64 threads=8"},
    // Keys that differ in few bits, in the upper or the lower word, or not at all.
    {"TopKSortsByKeys",
     "top_k input=FLOAT32[3,5003] output_values=FLOAT32[3,1100] output_indices=UINT32[3,1100] "
     "axis=1 k=1100 "
     "axis_direction=DECREASING values=numbers seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsSomeZerosOfEitherSign",
     "top_k input=FLOAT32[3,5003] output_values=FLOAT32[3,1100] output_indices=UINT32[3,1100] "
     "axis=1 k=1100 "
     "axis_direction=INCREASING values=zeros seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsSomeHalves",
     "top_k input=FLOAT16[3,5003] output_values=FLOAT16[3,1300] output_indices=UINT32[3,1300] "
     "axis=1 k=1300 "
     "axis_direction=DECREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsSomeHalvesUpwards",
     "top_k input=FLOAT16[3,5003] output_values=FLOAT16[3,1300] output_indices=UINT32[3,1300] "
     "axis=1 k=1300 "
     "axis_direction=INCREASING values=rare_infinities seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsByPositions",
     "top_k input=INT8[3,5003] output_values=INT8[3,1400] output_indices=UINT32[3,1400] axis=1 "
     "k=1400 "
     "axis_direction=INCREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsByUpperWords",
     "top_k input=UINT64[3,5003] output_values=UINT64[3,400] output_indices=UINT64[3,400] axis=1 "
     "k=400 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsByLowerWords",
     "top_k input=INT64[3,5003] output_values=INT64[3,400] output_indices=UINT32[3,400] axis=1 "
     "k=400 "
     "axis_direction=INCREASING values=small_integers seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsSomeRowsByFewLanes",
     "top_k input=FLOAT32[3,6003] output_values=FLOAT32[3,1100] output_indices=UINT32[3,1100] "
     "axis=1 k=1100 "
     "axis_direction=DECREASING values=numbers seed=3 view=134217728 groups=1 threads=8"},
    {"TopKSortsSomeColumns",
     "top_k input=INT16[5003,2,8] output_values=INT16[1100,2,8] output_indices=UINT32[1100,2,8] "
     "axis=0 k=1100 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsSomeScatteredElements",
     "top_k input=FLOAT32[5003,3] output_values=FLOAT32[1100,3] output_indices=UINT32[1100,3] "
     "axis=0 k=1100 "
     "axis_direction=INCREASING values=specials seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsSomeColumnsByManyLanes",
     "top_k input=INT32[5003,2,8] output_values=INT32[300,2,8] output_indices=UINT32[300,2,8] "
     "axis=0 k=300 "
     "axis_direction=DECREASING values=numbers seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfNumbersThatMeetBelowNans",
     "top_k input=FLOAT32[3,5003] output_values=FLOAT32[3,1100] output_indices=UINT32[3,1100] "
     "axis=1 k=1100 "
     "axis_direction=DECREASING values=rare_nans seed=3 view=134217728 groups=64 threads=8"},
    {"TopKSortsSomeThatMeet",
     "top_k input=FLOAT32[5,6003] output_values=FLOAT32[5,1100] output_indices=UINT32[5,1100] "
     "axis=1 k=1100 "
     "axis_direction=DECREASING values=one_large seed=3 view=134217728 groups=64 threads=8"},
    // A large share of all elements.
    {"TopKOfOneInFour",
     "top_k input=INT32[4,4099] output_values=INT32[4,1000] output_indices=UINT32[4,1000] axis=1 "
     "k=1000 "
     "axis_direction=INCREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfOneInThreeInManySequences",
     "top_k input=FLOAT32[70,901] output_values=FLOAT32[70,300] output_indices=UINT32[70,300] "
     "axis=1 k=300 "
     "axis_direction=DECREASING values=specials seed=3 view=134217728 groups=8 threads=8"},
    {"TopKOfHalf",
     "top_k input=FLOAT16[3,2202] output_values=FLOAT16[3,1101] output_indices=UINT32[3,1101] "
     "axis=1 k=1101 "
     "axis_direction=DECREASING values=ties seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfHalfOfBytesInColumns",
     "top_k input=INT8[900,2,16] output_values=INT8[449,2,16] output_indices=UINT32[449,2,16] "
     "axis=0 k=449 "
     "axis_direction=INCREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfHalfOfScatteredWideElements",
     "top_k input=UINT64[1001,3] output_values=UINT64[500,3] output_indices=UINT64[500,3] axis=0 "
     "k=500 "
     "axis_direction=DECREASING values=random_bits seed=3 view=134217728 groups=512 threads=256"},
    {"TopKOfHalfThatMeets",
     "top_k input=FLOAT32[5,2203] output_values=FLOAT32[5,1101] output_indices=UINT32[5,1101] "
     "axis=1 k=1101 "
     "axis_direction=DECREASING values=one_large seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfHalfAllEqual",
     "top_k input=INT64[2,999] output_values=INT64[2,499] output_indices=UINT32[2,499] axis=1 "
     "k=499 "
     "axis_direction=INCREASING values=constant seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfHalfInParts",
     "top_k input=INT16[4500,37] output_values=INT16[2200,37] output_indices=UINT32[2200,37] "
     "axis=0 k=2200 "
     "axis_direction=DECREASING values=ties seed=3 view=8192 groups=64 threads=8"},
    {"TopKOfHalfOfLongRows",
     "top_k input=FLOAT32[2,30001] output_values=FLOAT32[2,14000] output_indices=UINT32[2,14000] "
     "axis=1 k=14000 "
     "axis_direction=DECREASING values=numbers seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfMoreThanHalf",
     "top_k input=UINT16[3,3001] output_values=UINT16[3,2000] output_indices=UINT32[3,2000] axis=1 "
     "k=2000 "
     "axis_direction=INCREASING values=random_bits seed=3 view=134217728 groups=64 threads=8"},
    // A cut that ends among equal elements, in one chunk and in several; lists of lists.
    {"TopKCutsAmongEqualElements",
     "top_k input=FLOAT32[2,16001] output_values=FLOAT32[2,1000] "
     "output_indices=UINT32[2,1000] axis=1 k=1000 axis_direction=DECREASING values=constant "
     "seed=3 view=134217728 groups=512 threads=256"},
    {"TopKCutsAmongEqualWideElementsOfManyChunks",
     "top_k input=INT64[2,50257] output_values=INT64[2,700] output_indices=UINT32[2,700] "
     "axis=1 k=700 axis_direction=INCREASING values=constant seed=3 view=134217728 groups=512 "
     "threads=256"},
    {"TopKCutsAmongEqualBytes",
     "top_k input=UINT8[3,65536] output_values=UINT8[3,2048] output_indices=UINT32[3,2048] "
     "axis=1 k=2048 axis_direction=DECREASING values=random_bits seed=3 view=134217728 "
     "groups=512 threads=256"},
    {"TopKOfFourLists",
     "top_k input=FLOAT32[1,65536] output_values=FLOAT32[1,100] output_indices=UINT32[1,100] "
     "axis=1 k=100 axis_direction=INCREASING values=ties seed=3 view=134217728 groups=64 "
     "threads=8"},
    {"TopKOfListsOfManySequences",
     "top_k input=FLOAT16[7,3,9001] output_values=FLOAT16[7,3,50] "
     "output_indices=UINT64[7,3,50] axis=2 k=50 axis_direction=DECREASING values=rare_nans "
     "seed=3 view=134217728 groups=64 threads=8"},
    {"TopKOfOneOfManyChunks",
     "top_k input=UINT32[1,70001] output_values=UINT32[1,1] output_indices=UINT32[1,1] axis=1 "
     "k=1 axis_direction=INCREASING values=descending seed=3 view=134217728 groups=64 "
     "threads=8"},
    // Elements that are apart: tiles that are not full, in parts of a view, several slices.
    {"TopKGathersTilesThatAreNotFull",
     "top_k input=FLOAT16[301,2,45] output_values=FLOAT16[20,2,45] "
     "output_indices=UINT32[20,2,45] axis=0 k=20 axis_direction=DECREASING values=specials "
     "seed=3 view=134217728 groups=512 threads=256"},
    {"TopKGathersRowsInParts",
     "top_k input=INT8[20001,2] output_values=INT8[40,2] output_indices=UINT32[40,2] axis=0 "
     "k=40 axis_direction=INCREASING values=random_bits seed=3 view=1024 groups=64 threads=8"},
    {"TopKGathersWideElements",
     "top_k input=UINT64[3,1300,5] output_values=UINT64[3,64,5] output_indices=UINT32[3,64,5] "
     "axis=1 k=64 axis_direction=DECREASING values=ties seed=3 view=134217728 groups=512 "
     "threads=256"},
    // All elements sorted by radix: of each width, from rows, from columns, in parts, in views that
    // do not hold a list, with digits that are all equal, into strides.
    {"TopKSortsBytesByRadix",
     "top_k input=INT8[3,5000] output_values=INT8[3,4999] output_indices=UINT32[3,4999] "
     "axis=1 k=4999 axis_direction=DECREASING values=random_bits seed=3 view=134217728 "
     "groups=512 threads=256"},
    {"TopKSortsHalvesByRadix",
     "top_k input=FLOAT16[2,3001] output_values=FLOAT16[2,2100] output_indices=UINT32[2,2100] "
     "axis=1 k=2100 axis_direction=INCREASING values=specials seed=3 view=134217728 "
     "groups=512 threads=256"},
    {"TopKSortsNumbersByRadix",
     "top_k input=FLOAT32[1,70001] output_values=FLOAT32[1,70001] "
     "output_indices=UINT32[1,70001] axis=1 k=70001 axis_direction=DECREASING "
     "values=rare_nans seed=3 view=134217728 groups=512 threads=256"},
    {"TopKSortsWideElementsByRadix",
     "top_k input=INT64[5,2100] output_values=INT64[5,1500] output_indices=UINT64[5,1500] "
     "axis=1 k=1500 axis_direction=INCREASING values=random_bits seed=3 view=134217728 "
     "groups=512 threads=256"},
    {"TopKSortsColumnsByRadix",
     "top_k input=UINT32[2500,7] output_values=UINT32[2300,7] output_indices=UINT32[2300,7] "
     "axis=0 k=2300 axis_direction=DECREASING values=ties seed=3 view=134217728 groups=512 "
     "threads=256"},
    {"TopKSortsEqualElementsByRadix",
     "top_k input=UINT16[9001] output_values=UINT16[9001] output_indices=UINT32[9001] axis=0 "
     "k=9001 axis_direction=INCREASING values=constant seed=3 view=134217728 groups=64 "
     "threads=8"},
    {"TopKSortsPartsIntoManyViews",
     "top_k input=FLOAT32[40001] output_values=FLOAT32[40001] output_indices=UINT32[40001] "
     "axis=0 k=40001 axis_direction=DECREASING values=random_bits seed=3 view=8192 groups=64 "
     "threads=8"},
    {"TopKSortsByRadixIntoStrides",
     "top_k input=INT16[2,3,2200] output_values=INT16[2,3,2150]/[6450,1,3] "
     "output_indices=UINT32[2,3,2150]/[13000,4300,2] axis=2 k=2150 axis_direction=DECREASING "
     "values=extremes seed=3 view=134217728 groups=64 threads=8"},
};

}  // namespace

absl::Span<const NamedCase> TopKPaths() { return kTopKPaths; }

}  // namespace opmill
