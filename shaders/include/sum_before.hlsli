// The sums of what the lanes of a group have.

#define TEAMS 16
#define TEAM_LANES (THREADS / TEAMS)
#define TEAM_STEP min(8, TEAM_LANES)  // lanes whose numbers are read at a time

groupshared uint lane_sums[THREADS];  // then of the lanes before, in its team
groupshared uint team_sums[TEAMS];    // of the teams before

// The sum of what the lanes before this one have. All lanes call it; it has two barriers.
uint SumBefore(uint lane, uint own) {
  lane_sums[lane] = own;
  if (lane < TEAMS) team_sums[lane] = 0;
  GroupMemoryBarrierWithGroupSync();
  if (lane < TEAMS) {
    uint sum = 0;
    [loop] for (uint first = lane * TEAM_LANES; first < (lane + 1) * TEAM_LANES; first += TEAM_STEP) {
      [unroll] for (uint l = 0; l < TEAM_STEP; ++l) {
        uint of_lane = lane_sums[first + l];
        lane_sums[first + l] = sum;
        sum += of_lane;
      }
    }
    [loop] for (uint later = lane + 1; later < TEAMS; ++later) InterlockedAdd(team_sums[later], sum);
  }
  GroupMemoryBarrierWithGroupSync();
  return lane_sums[lane] + team_sums[lane / TEAM_LANES];
}
