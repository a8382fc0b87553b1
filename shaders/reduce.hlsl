// The functions of DML_OPERATOR_REDUCE that give values. FUNCTION holds DirectML's number.
#define FUNCTION_AVERAGE 2
#define FUNCTION_L1 3
#define FUNCTION_L2 4
#define FUNCTION_LOG_SUM 5
#define FUNCTION_LOG_SUM_EXP 6
#define FUNCTION_MAX 7
#define FUNCTION_MIN 8
#define FUNCTION_MULTIPLY 9
#define FUNCTION_SUM 10
#define FUNCTION_SUM_SQUARE 11

#include "include/reduction_width.hlsli"
#define KERNEL_CONSTANTS ReductionConstants
#include "include/dispatch.hlsli"
#include "include/elements.hlsli"

#if FUNCTION == FUNCTION_MAX || FUNCTION == FUNCTION_MIN
#include "include/reduce_extreme.hlsli"
#elif IS_FLOAT
#include "include/reduce_float.hlsli"
#else
#include "include/reduce_int.hlsli"
#endif

#include "include/reduction.hlsli"
