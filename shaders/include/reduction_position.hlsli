// Part of reduction.hlsli, with TRACKS_POSITION: from the turn of an element to its position.
Part PartOfFolded(Folded folded, Task task) {
  UINTS turn = TurnOf(folded);
  UINTS item = c.item_count - 1 - (task.first + turn / SETS * task.step);
#if !IS_ROW
  UINTS position = item;
#else
#if DIMS == 0
  UINTS before = (UINTS)0;
  UINTS start = (UINTS)task.base;
#else
  UINTS run = item / c.run_vectors;
  item -= run * c.run_vectors;
  UINTS before = run * c.run_length;
  UINTS start = (UINTS)task.base;
  [unroll] for (uint i = 0; i < WIDTH; ++i) {
    COMPONENT(start, i) += ReducedOffset(COMPONENT(run, i));
  }
#endif
  UINTS position =
      before + item * VECTOR_ELEMENTS - start % VECTOR_ELEMENTS + SLOT_OF(SETS - 1 - turn % SETS, COMPONENTS);
#endif
  Part part;
  part.key = KeyOf(folded);
  part.position = HasFolded(folded) ? Ordered(c.first_position + position) : (UINTS)NOWHERE;
  return part;
}
