// Records: four words that one pass leaves for another. A software driver takes four times as long to
// store a vector as to store a word, so that top_k's are stored word by word there, and only words that
// somebody reads (docs/notes/top-k.md).
//   STORES_WORDS  1 when buffers of records are written as words

// `used`: the words that count, a bit each. `start` is the instance's own, in the buffer's elements.
#if STORES_WORDS
#define WRITTEN_RECORD uint
#define STORE_RECORD(buffer, start, at, record, used)              \
  {                                                                \
    uint4 stored_words = record;                                   \
    uint stored_at = (start) + (at) * 4;                           \
    if (((used) & 1) != 0) buffer[stored_at] = stored_words.x;     \
    if (((used) & 2) != 0) buffer[stored_at + 1] = stored_words.y; \
    if (((used) & 4) != 0) buffer[stored_at + 2] = stored_words.z; \
    if (((used) & 8) != 0) buffer[stored_at + 3] = stored_words.w; \
  }
#else
#define WRITTEN_RECORD uint4
#define STORE_RECORD(buffer, start, at, record, used) buffer[(start) + (at)] = record;
#endif
