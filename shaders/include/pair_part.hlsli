// Part of reduction.hlsli: a part that is two floats, whose names the including shader defines as FIRST
// and SECOND.
#define PART_WORDS 2
#include "include/reduction_words.hlsli"

struct Part {
  FLOATS FIRST;
  FLOATS SECOND;
};

Words WordsOf(Part p) {
  Words w = {asuint(p.FIRST), asuint(p.SECOND)};
  return w;
}

Part PartOfWords(Words w) {
  Part p = {asfloat(w.x), asfloat(w.y)};
  return p;
}
