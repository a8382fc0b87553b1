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

struct Sums {
  SUM before;  // of the lanes before this one
  SUM all;
};

// All lanes call it; it has two barriers.
Sums SumLanes(uint lane, SUM own) {
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
  Sums sums = {lane_sums[lane], (SUM)0};
  SUM before_team = (SUM)0;
  [unroll] for (uint team = 0; team < TEAMS; ++team) {
    before_team = team == lane / TEAM_LANES ? sums.all : before_team;
    sums.all = Plus(sums.all, team_sums[team]);
  }
  sums.before = Plus(before_team, sums.before);
  return sums;
}
