/* Two lineages of one run (daemon/README, "Two lineages"), checked with Spin: tests/model/run.

   What is here. Seats on two sides of a cut that heals. A lineage's members go on together on one side, the others are PAUSED
   there; a side, its last nodes or none may be killed. A person orders `tgctl resume` on a side, whatever runs on the other: the
   newest state there begins a new lineage. From the moment that a node hears of another lineage of its run the rule holds.

   What it leaves out. Views (views.pml): a lineage's members commit in one action. How the nodes of a side agree.

   A lineage's key is its index, and its number one more than the greatest that the ordered side knows: two may be equal. What a
   seat holds is 1 + a lineage and its step; a lineage's line is, for each earlier one, the furthest step that it holds to (0: none).
   A seat's state in memory and its newest on disk are one. A state is lost when no seat that held it holds it, has set it aside,
   or was ordered to give it up.

   Bounds. N seats; L lineages; S steps; E lineages are COMPLETED at the last step, the others
   stay there; K kills; G joins by a person.
   MUTANT_*: a rule left out, which has to break a property. */

#ifndef N
#define N 2
#endif
#ifndef L
#define L 3
#endif
#ifndef S
#define S 2
#endif
#ifndef K
#define K 0
#endif
#ifndef G
#define G 0
#endif
#ifndef E
#define E 0
#endif

#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define NAME(i) (65 + (i))

/* The names of what is claimed; always false. */
hidden byte P7_one_lineage_at_the_end;
hidden byte P7_nothing_is_lost;
hidden byte P7_completed_stays;
hidden byte P7_joins_by_order;

byte newest;          /* lineages begun: 1 .. newest */
byte number[L + 1];
byte step[L + 1];     /* that its members have committed, at the side where it goes on */
byte side_of[L + 1];
byte line[(L + 1) * (L + 1)]; /* line[l, m] = 1 + the furthest step of m that l holds to; 0: none */
#define LINE(l, m) line[(l) * (L + 1) + (m)]

byte side;            /* of each seat, while it is cut */
bool is_cut, was_cut;
byte running;         /* seats */
byte held[N];         /* a lineage, */
byte at[N];           /* and 1 + the step */
byte completed;       /* seats whose held state is a COMPLETED run's */
byte left_run;        /* seats whose state was set aside: they come in by order only */
byte aside[(L + 1) * N]; /* 1 + the step set aside */
#define ASIDE(i, l) aside[(l) * N + (i)]
byte kills, joins, ends;
hidden byte x, y, z;

#define SIDE(i) HAS(side, i)
#define HEARS(i, j) (!is_cut || SIDE(i) == SIDE(j))
#define HIGHER(a, b) (number[a] > number[b] || (number[a] == number[b] && a > b))

/* Whether state (l, 1 + step) is on b's line, or stands at the beginning. */
#ifdef MUTANT_by_number_of_steps
#define ON_LINE(b, l, k) ((k) <= 1 + step[b])
#elif defined(MUTANT_newest_beginning_alone)
#define ON_LINE(b, l, k) ((l) == (b) || HIGHER(b, l) && (LINE(b, l) == 0 || (k) <= LINE(b, l)))
#else
#define ON_LINE(b, l, k) IS_ON_LINE(b, l, k)
#endif
#define IS_ON_LINE(b, l, k) ((l) == (b) || (k) <= LINE(b, l) || (l) > 1 && (k) == FIRST(l) && IS_START(b, l))
/* A lineage that has made no step stands at a state of an earlier one. */
#define FIRST(l) first[l]
byte first[L + 1];    /* 1 + the step at which it began */
byte parent[L + 1];
#define IS_START(b, l) (FIRST(l) <= LINE(b, parent[l]) || (parent[l] == b && FIRST(l) <= 1 + step[b]))

/* What seat i holds goes: it must be on b's line. */
inline gives_way(i, b) {
  assert(P7_completed_stays || !HAS(completed, i) || IS_ON_LINE(b, held[i], at[i]));
  assert(P7_nothing_is_lost || IS_ON_LINE(b, held[i], at[i]))
}

#define OF_SIDE(x, l) (HAS(running, x) && held[x] == l && (!is_cut || SIDE(x) == side_of[l]))
#if N == 2
#define ANY(F, l) (F(0, l) || F(1, l))
#define ALL(F, s) (F(0, s) && F(1, s))
#else
#define ANY(F, l) (F(0, l) || F(1, l) || F(2, l))
#define ALL(F, s) (F(0, s) && F(1, s) && F(2, s))
#endif
inline go_on(l) {
  d_step {
    l <= newest && step[l] < S && ANY(OF_SIDE, l) ->
    step[l]++;
    printf("= lineage %d commits state %d\n", l, step[l]);
    for (x : 0 .. N - 1) { if :: OF_SIDE(x, l) -> at[x] = 1 + step[l] :: else fi }
  }
}
inline complete(l) {
  d_step {
    ends < E && l <= newest && step[l] == S && ANY(OF_SIDE, l) ->
    ends++;
    printf("= lineage %d is COMPLETED\n", l);
    for (x : 0 .. N - 1) { if :: OF_SIDE(x, l) && at[x] == 1 + S -> completed = completed | BIT(x); running = running & ~BIT(x) :: else fi }
  }
}

inline cut(sides) {
  d_step {
    !was_cut ->
    was_cut = 1; is_cut = 1; side = sides;
    for (x : 1 .. newest) { side_of[x] = 0 }
    printf("= cut: %d\n", sides)
  }
}
inline heal() {
  d_step {
    is_cut ->
    is_cut = 0; side = 0;
    for (x : 1 .. newest) { side_of[x] = 0 }
    printf("= the cut heals\n")
  }
}
inline kill(i) {
  d_step {
    kills < K && HAS(running, i) ->
    kills++;
    running = running & ~BIT(i);
    printf("= %c is killed and started again\n", NAME(i))
  }
}

/* A person stops what a side has, and resumes there: its newest state begins the next lineage; who holds that lineage beyond it gives
   that up, by order. COMPLETED runs are not resumed. */
#define MAY_RESUME(x, s) (SIDE(x) != s || (!HAS(completed, x) && held[x]))
inline order(s) {
  d_step {
    is_cut && newest < L && ALL(MAY_RESUME, s) ->
    y = 0; z = 0;
    for (x : 0 .. N - 1) { if :: SIDE(x) == s && (y == 0 || HIGHER(held[x], y)) -> y = held[x] :: else fi }
    for (x : 0 .. N - 1) { if :: SIDE(x) == s && held[x] == y && (z == 0 || at[x] < z) -> z = at[x] :: else fi }
    newest++;
    number[newest] = number[y] + 1;
    step[newest] = z - 1;
    first[newest] = z;
    parent[newest] = y;
    side_of[newest] = s;
    for (x : 1 .. L) { LINE(newest, x) = LINE(y, x) }
    LINE(newest, y) = z;
    printf("= lineage %d, number %d, begins on side %d at state %d of lineage %d\n", newest, number[newest], s, z - 1, y);
    for (x : 0 .. N - 1) {
      if :: SIDE(x) == s && held[x] == y -> held[x] = newest; at[x] = z; running = running | BIT(x) :: else fi
    }
  }
}

/* j's beats name its lineage, or the one that is COMPLETED there. */
#ifdef MUTANT_over_is_silent
#define TOLD(j, b) (held[j] == b && HAS(running, j))
#else
#define TOLD(j, b) (held[j] == b && (HAS(running, j) || HAS(completed, j)))
#endif
#ifdef MUTANT_heeded_while_paused
#define HEEDS(i) (!HAS(running, i))
#else
#define HEEDS(i) 1
#endif
#ifdef MUTANT_completed_comes_in
#define CONTRADICTS(b, i) (!HAS(completed, i) && !ON_LINE(b, held[i], at[i]))
#elif defined(MUTANT_comes_in_with_more)
#define CONTRADICTS(b, i) 0
#else
#define CONTRADICTS(b, i) (!ON_LINE(b, held[i], at[i]))
#endif
inline hear(i, j) {
  d_step {
    i != j && HEARS(i, j) && held[i] && held[j] && held[i] != held[j] && TOLD(j, held[j]) && HIGHER(held[j], held[i]) && HEEDS(i) &&
      (CONTRADICTS(held[j], i) || HAS(running, j)) ->
    y = held[j];
    if
    :: CONTRADICTS(y, i) ->
      ASIDE(i, held[i]) = at[i];
      printf("= %c sets state %d of lineage %d aside: it hears lineage %d\n", NAME(i), at[i] - 1, held[i], y);
      held[i] = 0; at[i] = 0;
      running = running & ~BIT(i); completed = completed & ~BIT(i);
#ifndef MUTANT_comes_back_by_itself
      left_run = left_run | BIT(i)
#endif
    :: else ->
      gives_way(i, y);
      held[i] = y; at[i] = 1 + step[y];
      running = running | BIT(i); completed = completed & ~BIT(i);
      printf("= %c comes into lineage %d\n", NAME(i), y)
    fi
  }
}

/* A member that was PAUSED or killed hears its own lineage, and comes back; so does a node that holds nothing. */
inline come_back(i, j) {
  d_step {
    i != j && HEARS(i, j) && HAS(running, j) && !HAS(left_run, i) && (held[i] == held[j] || held[i] == 0) && (!HAS(running, i) || at[i] != at[j]) && at[i] <= at[j] ->
    for (x : 1 .. L) { assert(P7_joins_by_order || !ASIDE(i, x) || HAS(left_run, i) || joins) }
    held[i] = held[j]; at[i] = at[j]; running = running | BIT(i);
    printf("= %c comes back to lineage %d\n", NAME(i), held[j])
  }
}
inline join(i) {
  d_step {
    joins < G && HAS(left_run, i) && !is_cut ->
    joins++;
    left_run = left_run & ~BIT(i);
    printf("= a person lets %c join\n", NAME(i))
  }
}

proctype seat(byte me) {
end:
  do
  :: hear(me, (me + 1) % N)
#if N > 2
  :: hear(me, (me + 2) % N)
#endif
  :: come_back(me, (me + 1) % N)
#if N > 2
  :: come_back(me, (me + 2) % N)
#endif
#if K > 0
  :: kill(me)
#endif
#if G > 0
  :: join(me)
#endif
  od
}

proctype world() {
end:
  do
  :: go_on(1)
  :: go_on(2)
#if L > 2
  :: go_on(3)
#endif
#if L > 3
  :: go_on(4)
#endif
#if E > 0
  :: complete(1)
  :: complete(2)
#if L > 2
  :: complete(3)
#endif
#endif
  :: cut(1)
  :: cut(2)
#if N > 2
  :: cut(4)
#endif
  :: heal()
  :: order(0)
  :: order(1)
  od
}

/* Nothing can happen any more: who still runs runs one lineage, and none that a higher COMPLETED one contradicts. */
inline look_at_the_end() {
  z = 0;
  for (x : 0 .. N - 1) {
    if
    :: HAS(running, x) ->
      assert(P7_one_lineage_at_the_end || z == 0 || z == held[x]);
      z = held[x];
      for (y : 0 .. N - 1) { assert(P7_one_lineage_at_the_end || !HAS(completed, y) || !HIGHER(held[y], held[x]) || IS_ON_LINE(held[y], held[x], at[x])) }
    :: else
    fi
  }
}

init {
  d_step {
    newest = 1; number[1] = 1; first[1] = 1;
    running = (1 << N) - 1;
    for (x : 0 .. N - 1) { held[x] = 1; at[x] = 1 }
    x = 0
  }
  atomic {
    run world();
    run seat(0);
    run seat(1);
#if N > 2
    run seat(2);
#endif
    skip
  }
  timeout;
  d_step { look_at_the_end() }
}
