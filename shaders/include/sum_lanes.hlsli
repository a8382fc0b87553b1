// The sums of what the lanes of a group have.
//   SUM, Plus(SUM, SUM)  optional: what is added, and how
#ifndef SUM
#define SUM uint
SUM Plus(SUM a, SUM b) { return a + b; }
#endif

#define MOST_TEAMS 16
#define TEAMS min(MOST_TEAMS, THREADS)
#define TEAM_LANES (THREADS / TEAMS)
#define TEAM_STEP min(8, TEAM_LANES)  // lanes whose numbers are read at a time

groupshared SUM lane_sums[THREADS];  // then of the lanes before, in its team
groupshared SUM team_sums[MOST_TEAMS];

// The opaque zero keeps compilers from unrolling the loop.
SUM SumOfTeams(uint count) {
  SUM sum = (SUM)0;
  [loop] for (uint team = c.groups.zero; team < count; ++team) sum = Plus(sum, team_sums[team]);
  return sum;
}

// The sum of what the lanes before this one have. All lanes call it; it has two barriers.
SUM SumBefore(uint lane, SUM own) {
  lane_sums[lane] = own;
  GroupMemoryBarrierWithGroupSync();
  if (lane < TEAMS) {
    SUM sum = (SUM)0;
    [loop] for (uint first = lane * TEAM_LANES; first < (lane + 1) * TEAM_LANES; first += TEAM_STEP) {
      [unroll] for (uint l = 0; l < TEAM_STEP; ++l) {
        SUM of_lane = lane_sums[first + l];
        lane_sums[first + l] = sum;
        sum = Plus(sum, of_lane);
      }
    }
    team_sums[lane] = sum;
  }
  GroupMemoryBarrierWithGroupSync();
  return Plus(SumOfTeams(lane / TEAM_LANES), lane_sums[lane]);
}

// After SumBefore: of what all lanes have.
SUM SumOfAll() { return SumOfTeams(TEAMS); }
