/* View changes (DESIGN 6b), checked with Spin: tests/model/run.

   What is here. Each seat is one process. A change of view v -> v+1 is one decision of Paxos among the voters of v, whose
   votes (view, promised ballot, accepted ballot) and newest checkpoint lie on disk; a crash loses the rest, a wiped directory
   loses all. A voter that promises reads its committed step and seals in the same action. Members go back by one state at
   most. Where no voter has memory the voters go on from a checkpoint under a new run key.

   A join. The senior quiesces all at one state, which it sends to one joiner once all have confirmed it. The joiner reports
   when it has the state. The senior then leads a change whose value is the same list and the joiner, at the quiesced state:
   only if all are still quiesced, all members have promised in this ballot, no accepted value binds it, and the joiner has
   reported this view and step. Else the value is the ordinary one. Only the senior, or a new view, releases the members. The
   joiner stores the state before its first vote, and votes from the next view on.

   A planned leave. A member that leaves says so, promises and accepts, is in no value, begins no ballot, and is gone once it
   is evicted or has waited long enough; its vote stays on disk. `tgctl leave` is the same while all are quiesced.

   What it leaves out. Links and one-way cuts (LEAVEOUT stands for any choice of members), timers, ends of a run, flags, digests,
   weights, torn files, forced resume without a quorum, more than four seats, two joiners at once, a transfer that is broken
   off and taken up again.

   How it is modelled.
   - A message is a fact that stays. It is sent at once and read at any time or never: so there are no actions for announcing
     a step, reporting it, confirming it or releasing the members, and nothing is lost but by never being read.
   - A process that does nothing any more is dead, or cut off. A crash is a restart with what is on disk (PROGRESS: or the end).
   - What a state is made of: E(v, k), state k in view v, is the list of the views that made its steps 1 to k. Views are told
     apart by their number alone, for P1 holds; so each start decided says what E is, and no seat needs to carry it. A node that
     takes over a state has to find that E is the same before and after.
   - The half that a member does not stand on is taken as torn as soon as the gate of its step is open (the worst case): an
     undone step must not be confirmed.
   - Ballots are numbers; whose one is, is written where it is claimed: any order of owners is possible.
   - The promises of one ballot are summed up as they come: sets, steps, the highest accepted ballot, the newest checkpoint.
     A proposing coordinator has read all that there are (not to have read one is the same as its being made later). After the
     proposal no voter promises that ballot: to accept says as much.
   - Facts of a change are forgotten once none of its voters can read them.
   - The last view, V, is only installed, and nothing in it is looked at: what would happen in it can break nothing.
   - At learning a Decide, recording it and installing the view are one action: a crash between the two is the same as a crash
     before, after which it is recorded by a process that is no member.

   Bounds. N seats, of which the first M are the first view; V views; B ballots a change; S steps; C crashes of one, W of them
   with the directory wiped, R with an older copy of it; J quiesces; Q leaves; KA kills of all; L run keys; LEAVEOUT: one promiser may be left out; ORDER: a
   person orders `tgctl resume`. PROGRESS: what has to happen happens; SP: ballots without a reason (without PROGRESS they are
   free); RETURN: a node that has left is started again (without PROGRESS it always may be). C + Q + KA is 3 at most.

   Properties: P1 to P6 of DESIGN 6b, each assertion with its name. P5 under PROGRESS: facts only grow, so every run ends (np
   cycles are looked for too), and what stands at the end is looked at.

   MUTANT_*: a rule left out, which has to break a property. NO_P4, NO_P6: without the assertions that say the rule itself, to
   see what else breaks. */

#ifndef N
#define N 2
#endif
#ifndef M
#define M N
#endif
#ifndef V
#define V 2
#endif
#ifndef B
#define B 1
#endif
#ifndef S
#define S 1
#endif
#ifndef C
#define C 0
#endif
#ifndef W
#define W 0
#endif
#ifndef R
#define R 0
#endif
#ifndef J
#define J 0
#endif
#ifndef Q
#define Q 0
#endif
#ifndef KA
#define KA 0
#endif
#ifndef L
#define L 1
#endif
#ifndef SP
#define SP 0
#endif

#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define COUNT(set) (((set) & 1) + (((set) >> 1) & 1) + (((set) >> 2) & 1) + (((set) >> 3) & 1))
#define WITHIN(part, whole) (((part) & ~(whole)) == 0)
#define PAIR(word, i) (((word) >> (2 * (i))) & 3) /* two bits for each seat */
#define ALL_SEATS ((1 << N) - 1)
#define NAME(i) (65 + (i))

#if N == 2
#define ANY(F, v, b) (F(0, v, b) || F(1, v, b))
#elif N == 3
#define ANY(F, v, b) (F(0, v, b) || F(1, v, b) || F(2, v, b))
#else
#define ANY(F, v, b) (F(0, v, b) || F(1, v, b) || F(2, v, b) || F(3, v, b))
#endif

/* The names of what is claimed; always false. A broken one is printed with its assertion. */
hidden byte P1_one_view_a_number;
hidden byte P2_one_state_a_step;
hidden byte P3_start_covers_confirmed;
hidden byte P3_undo_by_one;
hidden byte P3_on_the_line_of_v;
hidden byte P3_nobody_with_state_lives;
hidden byte P4_a_vote_stands;
hidden byte P5_something_is_offered;
hidden byte P5_members_go_on;
hidden byte P5_leaver_is_left_out;
hidden byte P6_member_has_the_state;
#ifndef NO_P6
#define NO_P6 0
#endif
hidden byte P6_joins_while_quiesced;
hidden byte P6_quiesced_until_released;
hidden byte P6_start_is_the_quiesced_state;
hidden byte P6_all_have_promised;
hidden byte P6_nobody_is_taken_out;
hidden byte P6_joiner_has_no_vote;

/* Views that are decided: facts. View v's member i is process PAIR(incarnations[v], i) of its seat. */
byte newest;
byte members[V + 1];
byte incarnations[V + 1];
byte start[V + 1];
byte key[V + 1];
byte since[(V + 1) * N]; /* the view from which on a seat has been a member */
byte senior[V + 1];
#define SINCE(v, i) since[(v) * N + (i)]

/* Steps: the seats that have announced state k in view v. Quiesced at k: quiesced[v] = k + 1. What was last sent to a joiner:
   its seat and incarnation, k + 1, and whether it has reported to have the state. */
byte reached[(V + 1) * (S + 2)];
#define REACHED(v, k) reached[(v) * (S + 2) + (k)]
#define CONFIRMED(v, k) WITHIN(members[v], REACHED(v, k))
byte quiesced[V + 1];
byte sent[V + 1];
#define SENT_SEAT(v) (sent[v] & 3)
#define SENT_INCARNATION(v) ((sent[v] >> 2) & 3)
#define SENT_STATE(v) ((sent[v] >> 4) & 3)
#define TOLD(v) (sent[v] >> 6)

/* Ballot b of the change from view v: facts. */
#define AT(v, b) (((v) - 1) * B + (b) - 1)
#define BALLOTS ((V - 1) * B)
byte owner[BALLOTS];   /* 16 + seat + 4 * incarnation */
byte got[BALLOTS];     /* the voters that promised, */
byte memory[BALLOTS];  /* with state of v in memory, */
byte steps[BALLOTS];   /* committed steps of these, */
byte present[BALLOTS]; /* as which incarnations, */
byte parting[BALLOTS]; /* those of them that leave, */
byte adopt[BALLOTS];   /* the highest ballot that one of them had accepted, */
byte offer[BALLOTS];   /* the newest checkpoint offered: 4 * view + step, */
byte offering[BALLOTS];/* the seat that offers it */
byte value_members[BALLOTS];
byte value_incarnations[BALLOTS];
byte value_how[BALLOTS]; /* start, + 4: from a checkpoint, + 8: by a person's order */
byte agreed[BALLOTS];    /* the voters that accepted */
#define OWNER(c) (owner[c] & 3)
#define OWNER_INCARNATION(c) ((owner[c] >> 2) & 3)
#define TICKET(i) (16 + (i) + 4 * incarnation[i])

/* A seat's disk. */
byte view[N];     /* newest Decide recorded; 0: none */
byte promised[N]; /* in that view */
byte accepted[N];
byte kept[N];     /* newest checkpoint: 4 * view + step; 0: none */
byte born[N];     /* the incarnation that made the directory */

/* A seat's process. */
byte incarnation[N];
byte has[N];       /* the view whose state is in memory; 0: none */
byte committed[N];
byte snapshot[N];       /* a joiner's state k of view v: 4 * v + k + 1 */
byte up;
byte leaving;      /* is being shut down */

byte rising; /* is down, and will be started again */

byte old;             /* seats with an older vote than they have told */
byte crashes, wipes, restores, quiesces, leaves, kills, suspicions;

hidden byte x, y, z, k, ok, w, c;

#ifdef MUTANT_old_votes
#define HAS_OLD_VOTE(i) 0
#else
#define HAS_OLD_VOTE(i) HAS(old, i)
#endif
#define OF_VOTER(i, v) (HAS(members[v], i) && born[i] <= PAIR(incarnations[v], i) && !HAS_OLD_VOTE(i))
#ifdef MUTANT_wiped_votes
#define VOTER(i, v) HAS(members[v], i)
#elif defined(MUTANT_joiner_votes)
#define VOTER(i, v) (OF_VOTER(i, v) || snapshot[i] / 4 == v)
#else
#define VOTER(i, v) OF_VOTER(i, v)
#endif
#ifdef MUTANT_join_without_incarnation
#define MEMBER(i, v) (HAS(members[v], i) && (PAIR(incarnations[v], i) == incarnation[i] || !HAS(members[v - 1], i)))
#else
#define MEMBER(i, v) (HAS(members[v], i) && PAIR(incarnations[v], i) == incarnation[i])
#endif
#define VOTES(i) (HAS(up, i) && view[i] && view[i] < V && VOTER(i, view[i]))
#ifdef MUTANT_any_half
#define QUORUM(set, v) (2 * COUNT(set) >= COUNT(members[v]))
#else
#define QUORUM(set, v) (2 * COUNT(set) > COUNT(members[v]) || (2 * COUNT(set) == COUNT(members[v]) && HAS(set, senior[v])))
#endif

/* ok = whether E(a, step) and E(b, step) are the same. */
inline same_line(a, b, step) {
  ok = 1;
  for (k : 1 .. step) {
    x = a;
    do :: start[x] >= k -> x-- :: else -> break od;
    y = b;
    do :: start[y] >= k -> y-- :: else -> break od;
    ok = ok && x == y
  }
}

/* What is confirmed in v is not below the start of v + 1. */
inline check_confirmed(v) {
  if
  :: v < newest && key[v + 1] == key[v] ->
    for (k : start[v + 1] + 1 .. S) { assert(P3_start_covers_confirmed || !CONFIRMED(v, k)) }
  :: else
  fi
}

/* Facts of changes that no voter can read any more. */
inline forget_old() {
#ifndef MUTANT_decide_not_recorded
  for (x : 1 .. V - 1) {
    ok = x < newest;
    for (y : 0 .. N - 1) { ok = ok && !(VOTER(y, x) && view[y] <= x) }
    if
    :: ok ->
      for (y : 1 .. B) {
        c = AT(x, y);
        owner[c] = 0; got[c] = 0; value_members[c] = 0; value_incarnations[c] = 0; value_how[c] = 0; agreed[c] = 0;
        memory[c] = 0; steps[c] = 0; present[c] = 0; parting[c] = 0; adopt[c] = 0; offer[c] = 0; offering[c] = 0
      }
      for (y : 0 .. S) { REACHED(x, y) = 0 }
#ifndef MUTANT_quiesce_kept
      quiesced[x] = 0;
#endif
      sent[x] = 0
    :: else
    fi
  }
#endif
  skip
}

/* --- Steps --- */

#ifdef MUTANT_no_gate
#define GATE_OPEN(i) 1
#else
#define GATE_OPEN(i) CONFIRMED(has[i], committed[i])
#endif
#define QUIESCED_HERE(i) (quiesced[has[i]] == committed[i] + 1)
#ifdef MUTANT_quiesce_ignored
#define QUIESCED(i) 0
#elif defined(MUTANT_joiner_believed_dead)
#define QUIESCED(i) (QUIESCED_HERE(i) && !(SENT_STATE(has[i]) == quiesced[has[i]] && incarnation[SENT_SEAT(has[i])] != SENT_INCARNATION(has[i])))
#elif defined(MUTANT_quiesce_kept)
#define QUIESCED(i) (QUIESCED_HERE(i) || (quiesced[has[i] - 1] == committed[i] + 1 && start[has[i]] == committed[i]))
#else
#define QUIESCED(i) QUIESCED_HERE(i)
#endif
#ifdef MUTANT_no_seal
#define SEALED(i) 0
#else
#define SEALED(i) (promised[i] > 0)
#endif

inline commit(i) {
  d_step {
    has[i] && has[i] < V && committed[i] < S && !SEALED(i) && GATE_OPEN(i) && !QUIESCED(i) ->
    assert(NO_P6 || P6_quiesced_until_released || !QUIESCED_HERE(i));
    committed[i]++;
    REACHED(has[i], committed[i]) = REACHED(has[i], committed[i]) | BIT(i);
    printf("= %c commits state %d of view %d\n", NAME(i), committed[i], has[i]);
    check_confirmed(has[i])
  }
}

#ifdef MUTANT_checkpoint_at_commit
#define MAY_KEEP(i, step) 1
#else
#define MAY_KEEP(i, step) CONFIRMED(has[i], step)
#endif

inline keep(i, step) {
  d_step {
    L > 1 && has[i] && has[i] < V && step >= start[has[i]] && (committed[i] == step || committed[i] == step + 1) && MAY_KEEP(i, step) && 4 * has[i] + step > kept[i] ->
    kept[i] = 4 * has[i] + step;
    printf("= %c stores a checkpoint: view %d, state %d\n", NAME(i), has[i], step)
  }
}

/* --- A planned leave --- */

#define LEAVES(i) HAS(leaving, i)
#ifdef PROGRESS
#define STAYS(j, v, b) (HAS(up, j) && has[j] && !LEAVES(j))
#define IS_BEHIND(j, v, b) (HAS(up, j) && has[j] && view[j] < (v))
/* The leaving member is evicted, and has passed the decision on; or all leave. */
#ifdef MUTANT_leaver_ends_at_once
#define GIVES_UP(i) 1
#elif defined(MUTANT_leaver_passes_nothing_on)
#define GIVES_UP(i) (!has[i] || !ANY(STAYS, 0, 0))
#else
#define GIVES_UP(i) (has[i] -> !ANY(STAYS, 0, 0) : !ANY(IS_BEHIND, view[i], 0))
#endif
#ifdef RETURN
#define IS_DOWN(i) up = up & ~BIT(i); rising = rising | BIT(i)
#else
#define IS_DOWN(i) up = up & ~BIT(i)
#endif
#else
#define GIVES_UP(i) 1
#define IS_DOWN(i) skip
#endif
/* again: it has promised before, and tells the coordinator once more in time. */
inline leave(i, again) {
  d_step {
    Q && HAS(up, i) && has[i] && has[i] < V && leaves < Q && !LEAVES(i) && (!again || (promised[i] && HAS(got[AT(view[i], promised[i])], i) && !value_members[AT(view[i], promised[i])])) ->
    leaves++;
    leaving = leaving | BIT(i);
    if :: again -> c = AT(view[i], promised[i]); parting[c] = parting[c] | BIT(i) :: else fi;
    printf("= %c leaves\n", NAME(i))
  }
}

inline end_process(i) {
  d_step {
    Q && HAS(up, i) && LEAVES(i) && GIVES_UP(i) ->
    restarted(i);
    IS_DOWN(i);
    printf("= %c is gone\n", NAME(i))
  }
}

/* --- A change of view --- */

#if defined(MUTANT_checkpoint_of_any_key) || defined(MUTANT_checkpoint_newer_than_memory)
#define OFFERED(i) 1
#else
#define OFFERED(i) (key[kept[i] / 4] == key[view[i]])
#endif
#ifdef MUTANT_checkpoint_newer_than_memory
#define NEWER(a, b) ((a) && (!(b) || (a) % 4 > (b) % 4))
#else
#define NEWER(a, b) ((a) > (b))
#endif

/* The promise, the committed step and the seal: one action. */
inline promise_now(i, b) {
  c = AT(view[i], b);
#ifndef NO_P4
  for (x : 1 .. B) {
    y = AT(view[i], x);
    assert(P4_a_vote_stands || x <= b || (!HAS(got[y], i) && !HAS(agreed[y], i)));
    assert(P4_a_vote_stands || x <= accepted[i] || !HAS(agreed[y], i))
  }
#endif
  assert(NO_P6 || P6_joiner_has_no_vote || HAS(members[view[i]], i));
  promised[i] = b;
  got[c] = got[c] | BIT(i);
  present[c] = present[c] | (incarnation[i] << (2 * i));
  if
  :: has[i] ->
    memory[c] = memory[c] | BIT(i);
    steps[c] = steps[c] | (committed[i] << (2 * i));
    if :: HAS(leaving, i) -> parting[c] = parting[c] | BIT(i) :: else fi
  :: else
  fi;
  adopt[c] = (accepted[i] > adopt[c] -> accepted[i] : adopt[c]);
  if
  :: kept[i] && OFFERED(i) ->
    if
    :: NEWER(kept[i], offer[c]) -> offer[c] = kept[i]; offering[c] = BIT(i)
    :: kept[i] == offer[c] -> offering[c] = offering[c] | BIT(i)
    :: else
    fi
  :: else
  fi;
  assert(P5_something_is_offered || L == 1 || got[c] != members[view[i]] || memory[c] || adopt[c] || offer[c])
}

#ifdef PROGRESS
/* A member's process is gone, or leaves; its newer one is not the member. */
#define MISSING_ONE(i, v, b) (HAS(members[v], i) && (LEAVES(i) || !(HAS(up, i) && PAIR(incarnations[v], i) == incarnation[i])))
#define SEALED_ONE(i, v, b) (HAS(up, i) && VOTER(i, v) && view[i] == v && promised[i])
#define ABOVE(i, v, b) (HAS(up, i) && VOTER(i, v) && view[i] == v && promised[i] > b)
#define LIVE(v, b) (owner[AT(v, b)] && HAS(up, OWNER(AT(v, b))) && incarnation[OWNER(AT(v, b))] == OWNER_INCARNATION(AT(v, b)) && \
  view[OWNER(AT(v, b))] == v && promised[OWNER(AT(v, b))] == b && !ANY(ABOVE, v, b))
#if B == 1
#define ANY_LIVE(v) LIVE(v, 1)
#elif B == 2
#define ANY_LIVE(v) (LIVE(v, 1) || LIVE(v, 2))
#elif B == 3
#define ANY_LIVE(v) (LIVE(v, 1) || LIVE(v, 2) || LIVE(v, 3))
#elif B == 4
#define ANY_LIVE(v) (LIVE(v, 1) || LIVE(v, 2) || LIVE(v, 3) || LIVE(v, 4))
#else
#define ANY_LIVE(v) (LIVE(v, 1) || LIVE(v, 2) || LIVE(v, 3) || LIVE(v, 4) || LIVE(v, 5))
#endif
/* j comes before i and may begin in its stead. */
#ifdef MUTANT_leaver_leads
#define COMES_FIRST(j) 1
#else
#define COMES_FIRST(j) (!LEAVES(j))
#endif
#define BEFORE(j, v, i) (HAS(up, j) && VOTER(j, v) && COMES_FIRST(j) && (SINCE(v, j) < SINCE(v, i) || (SINCE(v, j) == SINCE(v, i) && j < i)))
#define JOINER_LIVES(v) (HAS(up, SENT_SEAT(v)) && incarnation[SENT_SEAT(v)] == SENT_INCARNATION(v))
#define JOINER_WAITS(i, v) (i == senior[v] && has[i] == v && quiesced[v] && SENT_STATE(v) == quiesced[v] && TOLD(v) && JOINER_LIVES(v))
#ifdef MUTANT_no_takeover
#define REASON(i, v) (!promised[i] && (ANY(MISSING_ONE, v, 0) || JOINER_WAITS(i, v)))
#else
#define REASON(i, v) (ANY(MISSING_ONE, v, 0) || ANY(SEALED_ONE, v, 0) || JOINER_WAITS(i, v))
#endif
/* The most senior voter that is up, where no coordinator is at work; ballots are taken in their order. */
#define FOR_A_REASON(i, v) (!ANY(BEFORE, v, i) && !ANY_LIVE(v) && REASON(i, v))
#define CLAIM(i, v, b) ((b == 1 || owner[AT(v, b - (b > 1))]) && (suspicions < SP || FOR_A_REASON(i, v)))
/* The coordinator waits for every voter that it hears, unless it leaves. */
#define WAITED_FOR(i, v, b) (HAS(up, i) && VOTER(i, v) && !LEAVES(i) && view[i] <= v && !HAS(got[AT(v, b)], i) && !(view[i] == v && promised[i] > b))
#ifdef MUTANT_not_waited_for
#define HEARD_ALL(v, b) 1
#else
#define HEARD_ALL(v, b) (!ANY(WAITED_FOR, v, b))
#endif
/* Ballot b of v leaves out a member that could go on. */
#define TAKEN_OUT(i, v, b) (HAS(up, i) && has[i] == v && HAS(members[v], i) && !LEAVES(i) && promised[i] <= b && !HAS(value_members[AT(v, b)], i))
#else
#define CLAIM(i, v, b) 1
#define HEARD_ALL(v, b) 1
#endif

#ifdef MUTANT_ballot_reused
#define REUSED(i, c) (OWNER(c) == i && OWNER_INCARNATION(c) != incarnation[i])
#else
#define REUSED(i, c) 0
#endif

/* Coordinator: a ballot above all in its own file; its own promise first. */
inline claim(i, b) {
  d_step {
    VOTES(i) && !LEAVES(i) && promised[i] < b && (!owner[AT(view[i], b)] || REUSED(i, AT(view[i], b))) && CLAIM(i, view[i], b) ->
#ifdef PROGRESS
    if :: FOR_A_REASON(i, view[i]) :: else -> suspicions++ fi;
#endif
    printf("= %c begins ballot %d of view %d with its own promise: %d in memory, committed %d\n", NAME(i), b, view[i], has[i] > 0, committed[i]);
    c = AT(view[i], b);
    owner[c] = TICKET(i);
    got[c] = 0; value_members[c] = 0; value_incarnations[c] = 0; value_how[c] = 0;
    promise_now(i, b)
  }
}
inline promise(i, b) {
  d_step {
    VOTES(i) && promised[i] < b && owner[AT(view[i], b)] && !value_members[AT(view[i], b)] ->
    printf("= %c promises ballot %d of view %d: %d in memory, committed %d, accepted ballot %d\n", NAME(i), b, view[i], has[i] > 0, committed[i], accepted[i]);
    promise_now(i, b)
  }
}

/* The coordinator repeats its Prepare; a newer process of a voter that has promised has nothing in memory. */
inline promise_anew(i) {
  d_step {
    VOTES(i) && promised[i] && HAS(got[AT(view[i], promised[i])], i) && PAIR(present[AT(view[i], promised[i])], i) != incarnation[i] && !value_members[AT(view[i], promised[i])] &&
      OWNER_INCARNATION(AT(view[i], promised[i])) == incarnation[OWNER(AT(view[i], promised[i]))] ->
    c = AT(view[i], promised[i]);
    memory[c] = memory[c] & ~BIT(i);
    parting[c] = parting[c] & ~BIT(i);
    steps[c] = steps[c] & ~(3 << (2 * i));
    present[c] = present[c] & ~(3 << (2 * i));
    printf("= %c promises ballot %d of view %d anew\n", NAME(i), promised[i], view[i]);
    promise_now(i, promised[i])
  }
}

#define PROPOSES(i, b) (VOTES(i) && promised[i] == b && owner[AT(view[i], b)] == TICKET(i) && !value_members[AT(view[i], b)] && \
  QUORUM(got[AT(view[i], b)], view[i]) && HEARD_ALL(view[i], b))

inline proposed(i, b) {
  printf("= %c proposes in ballot %d of view %d: members %d, start %d, from a checkpoint %d\n", NAME(i), b, view[i], value_members[c], value_how[c] & 3, value_how[c] / 4);
  memory[c] = 0; steps[c] = 0; present[c] = 0; parting[c] = 0; adopt[c] = 0; offer[c] = 0; offering[c] = 0
}

#ifdef MUTANT_max_start
#define START_BEGINS 0
#define START_OF(step, best) (step > best)
#else
#define START_BEGINS 3
#define START_OF(step, best) (step < best)
#endif

/* Sets the value to this set of members: it starts at the least step of those that are counted. */
inline value_of(set, counted) {
  value_members[c] = set;
  value_incarnations[c] = 0;
  ok = START_BEGINS;
  for (x : 0 .. N - 1) {
    if
    :: HAS(set, x) ->
      value_incarnations[c] = value_incarnations[c] | (PAIR(present[c], x) << (2 * x))
    :: else
    fi;
    if
    :: HAS(counted, x) ->
      if :: HAS(memory[c], x) && START_OF(PAIR(steps[c], x), ok) -> ok = PAIR(steps[c], x) :: else fi
    :: else
    fi
  }
  value_how[c] = ok
}

inline value_of_checkpoint(v, how) {
  same_line(v, offer[c] / 4, offer[c] % 4);
  assert(P3_on_the_line_of_v || ok);
  value_members[c] = offering[c];
  value_incarnations[c] = 0;
  for (x : 0 .. N - 1) {
    if
    :: HAS(offering[c], x) -> value_incarnations[c] = value_incarnations[c] | (PAIR(present[c], x) << (2 * x))
    :: else
    fi
  }
  value_how[c] = offer[c] % 4 + how
}

#ifdef MUTANT_no_adoption
#define ADOPT(c) 0
#else
#define ADOPT(c) adopt[c]
#endif

#ifdef MUTANT_leaver_in_value
#define OUTGOING(c) 0
#else
#define OUTGOING(c) parting[c]
#endif

/* Proposes an accepted value; else all voters that have memory and do not leave (LEAVEOUT: but one). Those that leave count. */
inline propose(i, b, left_out) {
  d_step {
    PROPOSES(i, b) && (ADOPT(AT(view[i], b)) -> left_out == 0 :
      (memory[AT(view[i], b)] & ~left_out & ~OUTGOING(AT(view[i], b))) && WITHIN(left_out, memory[AT(view[i], b)] & ~OUTGOING(AT(view[i], b)))) ->
    c = AT(view[i], b);
    if
    :: ADOPT(c) ->
      y = AT(view[i], adopt[c]);
      value_members[c] = value_members[y];
      value_incarnations[c] = value_incarnations[y];
      value_how[c] = value_how[y]
    :: else ->
#ifdef MUTANT_value_with_silent
      z = members[view[i]];
      for (x : 0 .. N - 1) { if :: !HAS(got[c], x) -> present[c] = present[c] | (PAIR(incarnations[view[i]], x) << (2 * x)) :: else fi }
#else
      z = memory[c] & ~left_out & ~OUTGOING(c);
#endif
      value_of(z, (z | memory[c]) & ~left_out);
#ifdef PROGRESS
      assert(P6_nobody_is_taken_out || !ANY(TAKEN_OUT, view[i], b));
#endif
      assert(P5_leaver_is_left_out || !(value_members[c] & parting[c]))
    fi;
    proposed(i, b)
  }
}

/* Proposes the same list and the joiner, at the quiesced step. */
#ifdef MUTANT_join_before_snapshot
#define JOINER_HAS_STATE(v) (SENT_STATE(v) == quiesced[v])
#elif defined(MUTANT_join_at_another_step) || defined(MUTANT_join_after_release)
#define JOINER_HAS_STATE(v) TOLD(v)
#else
#define JOINER_HAS_STATE(v) (TOLD(v) && SENT_STATE(v) == quiesced[v])
#endif
#ifdef MUTANT_join_after_release
#define IS_QUIESCED(v) 1
#define QUIESCED_STATE(v) SENT_STATE(v)
#else
#define IS_QUIESCED(v) quiesced[v]
#define QUIESCED_STATE(v) quiesced[v]
#endif
#ifdef MUTANT_join_without_all
#define ALL_STAND(c, v) memory[c]
#else
#define ALL_STAND(c, v) (memory[c] == members[v])
#endif
#ifdef MUTANT_join_over_accepted
#define BOUND(c) 0
#else
#define BOUND(c) adopt[c]
#endif
inline propose_joiner(i, b) {
  d_step {
    J && PROPOSES(i, b) && has[i] && i == senior[view[i]] && !BOUND(AT(view[i], b)) && ALL_STAND(AT(view[i], b), view[i]) && !parting[AT(view[i], b)] &&
      IS_QUIESCED(view[i]) && JOINER_HAS_STATE(view[i]) ->
    c = AT(view[i], b);
    z = members[view[i]];
    assert(NO_P6 || P6_all_have_promised || memory[c] == z);
    value_of(z, z);
    z = SENT_SEAT(view[i]);
    value_members[c] = value_members[c] | BIT(z);
    value_incarnations[c] = value_incarnations[c] | (SENT_INCARNATION(view[i]) << (2 * z));
    value_how[c] = QUIESCED_STATE(view[i]) - 1;
    proposed(i, b)
  }
}

/* Proposes a checkpoint under a new run key: no voter has memory, and all voters promised, or a person orders it. */
#ifdef MUTANT_checkpoint_beside_memory
#define NO_MEMORY(c) 1
#elif defined(MUTANT_checkpoint_newer_than_memory)
#define STEP_BELOW(i, v, c) (HAS(memory[c], i) && PAIR(steps[c], i) >= offer[c] % 4)
#define NO_MEMORY(c) (!ANY(STEP_BELOW, 0, c))
#else
#define NO_MEMORY(c) (!memory[c])
#endif
#ifdef MUTANT_goes_on_without_all
#define ALL_PROMISED(c, v) 1
#else
#define ALL_PROMISED(c, v) (got[c] == members[v])
#endif
inline propose_checkpoint(i, b) {
  d_step {
    PROPOSES(i, b) && NO_MEMORY(AT(view[i], b)) && !adopt[AT(view[i], b)] && offer[AT(view[i], b)] && key[view[i]] < L && ALL_PROMISED(AT(view[i], b), view[i]) ->
    c = AT(view[i], b);
    value_of_checkpoint(view[i], 4);
    proposed(i, b)
  }
}
inline propose_by_order(i, b) {
  d_step {
    PROPOSES(i, b) && NO_MEMORY(AT(view[i], b)) && !adopt[AT(view[i], b)] && offer[AT(view[i], b)] && key[view[i]] < L && got[AT(view[i], b)] != members[view[i]] ->
    c = AT(view[i], b);
    value_of_checkpoint(view[i], 12);
    proposed(i, b)
  }
}

inline decide(v) {
  if
  :: v < newest ->
    assert(P1_one_view_a_number || (members[v + 1] == value_members[c] && incarnations[v + 1] == value_incarnations[c] &&
      start[v + 1] == (value_how[c] & 3) && key[v + 1] == key[v] + (value_how[c] >= 4)))
  :: else ->
    printf("= view %d is decided\n", v + 1);
    newest = v + 1;
    members[v + 1] = value_members[c];
    incarnations[v + 1] = value_incarnations[c];
    start[v + 1] = value_how[c] & 3;
    key[v + 1] = key[v] + (value_how[c] >= 4);
#ifdef MUTANT_snapshot_of_another_view
    sent[v + 1] = sent[v];
#endif
    z = 0; /* the senior's since */
    for (x : 0 .. N - 1) {
      if
      :: HAS(members[v + 1], x) ->
        SINCE(v + 1, x) = (HAS(members[v], x) -> SINCE(v, x) : v + 1);
        if :: z == 0 || SINCE(v + 1, x) < z -> z = SINCE(v + 1, x); senior[v + 1] = x :: else fi
      :: else
      fi;
      assert(P3_nobody_with_state_lives || value_how[c] / 4 != 1 || has[x] != v)
    }
    assert(NO_P6 || P6_start_is_the_quiesced_state || !quiesced[v] || key[v + 1] != key[v] || !CONFIRMED(v, quiesced[v] - 1) || start[v + 1] + 1 == quiesced[v]);
    assert(NO_P6 || P6_joins_while_quiesced || WITHIN(members[v + 1], members[v]) || (quiesced[v] == start[v + 1] + 1 && COUNT(members[v + 1]) == COUNT(members[v]) + 1));
    check_confirmed(v)
  fi
}

inline accept(i, b) {
  d_step {
    VOTES(i) && value_members[AT(view[i], b)] && promised[i] <= b && accepted[i] != b ->
    c = AT(view[i], b);
#ifndef NO_P4
    for (x : b + 1 .. B) { assert(P4_a_vote_stands || (!HAS(got[AT(view[i], x)], i) && !HAS(agreed[AT(view[i], x)], i))) }
#endif
    promised[i] = b;
    accepted[i] = b;
    assert(NO_P6 || P6_joiner_has_no_vote || HAS(members[view[i]], i));
    agreed[c] = agreed[c] | BIT(i);
    printf("= %c accepts in ballot %d of view %d\n", NAME(i), b, view[i]);
    if :: QUORUM(agreed[c], view[i]) -> decide(view[i]) :: else fi
  }
}

/* The nodes that may know of view u. */
#ifdef PROGRESS
#define HOLDER(j, u, i) (HAS(up, j) && view[j] == u && PASSES(j, u, i))
#define COUNTED(i, b) (owner[AT(view[i], b)] == TICKET(i) && value_members[AT(view[i], b)] && QUORUM(agreed[AT(view[i], b)], view[i]))
#if B == 1
#define COUNTED_ANY(i) COUNTED(i, 1)
#elif B == 2
#define COUNTED_ANY(i) (COUNTED(i, 1) || COUNTED(i, 2))
#elif B == 3
#define COUNTED_ANY(i) (COUNTED(i, 1) || COUNTED(i, 2) || COUNTED(i, 3))
#elif B == 4
#define COUNTED_ANY(i) (COUNTED(i, 1) || COUNTED(i, 2) || COUNTED(i, 3) || COUNTED(i, 4))
#else
#define COUNTED_ANY(i) (COUNTED(i, 1) || COUNTED(i, 2) || COUNTED(i, 3) || COUNTED(i, 4) || COUNTED(i, 5))
#endif
#ifdef MUTANT_decide_not_passed_on
/* The coordinator alone tells it. */
#define PASSES(j, u, i) (ANY_OWNED(j, u - 1))
#define OWNED(j, v, b) (owner[AT(v, b)] == TICKET(j) && QUORUM(agreed[AT(v, b)], v))
#if B == 1
#define ANY_OWNED(j, v) (v && OWNED(j, v, 1))
#elif B == 2
#define ANY_OWNED(j, v) (v && (OWNED(j, v, 1) || OWNED(j, v, 2)))
#else
#define ANY_OWNED(j, v) (v && (OWNED(j, v, 1) || OWNED(j, v, 2) || OWNED(j, v, 3)))
#endif
#else
#define PASSES(j, u, i) 1
#endif
#define KNOWN(i, u) (ANY(HOLDER, u, i) || (view[i] == u - 1 && view[i] && COUNTED_ANY(i)))
#else
#define KNOWN(i, u) 1
#endif

#ifdef MUTANT_wiped_votes
#define CONCERNED(i, u) HAS(members[u], i)
#else
#define CONCERNED(i, u) ((view[i] && VOTER(i, view[i])) || OF_VOTER(i, u) || snapshot[i] || HAS(old, i))
#endif

#if defined(MUTANT_joiner_keeps_nothing) || defined(MUTANT_checkpoint_newer_than_memory) || defined(MUTANT_checkpoint_of_any_key)
#define STORE_ANEW(i, u) skip
#else
#define STORE_ANEW(i, u) kept[i] = (L > 1 -> 4 * u + start[u] : 0)
#endif
#if defined(MUTANT_checkpoint_newer_than_memory) || defined(MUTANT_checkpoint_of_any_key)
#define STORE_UNDER_KEY(i, u) skip
#else
#define STORE_UNDER_KEY(i, u) kept[i] = 4 * u + start[u]
#endif
#ifdef MUTANT_only_members_store
#define STORES(i, u) MEMBER(i, u)
#else
#define STORES(i, u) OF_VOTER(i, u)
#endif

#ifdef MUTANT_no_undo
#define GOES_ON_AT(i, u) committed[i]
#else
#define GOES_ON_AT(i, u) start[u]
#endif

/* Records a Decide and installs the view. */
inline learn(i, u) {
  d_step {
    HAS(up, i) && u <= newest && view[i] < u && CONCERNED(i, u) && KNOWN(i, u) ->
    printf("= %c records view %d\n", NAME(i), u);
    if
    :: u > 1 && MEMBER(i, u) ->
      if
      :: key[u] != key[u - 1] -> /* goes on from its checkpoint */
        same_line(kept[i] / 4, u, start[u]);
        assert(P6_member_has_the_state || (ok && kept[i] && kept[i] % 4 == start[u]))
      :: key[u] == key[u - 1] && HAS(members[u - 1], i) ->
        assert(P6_member_has_the_state || has[i] == u - 1);
        assert(P3_undo_by_one || committed[i] == start[u] || committed[i] == start[u] + 1);
        assert(P3_undo_by_one || committed[i] == start[u] || !CONFIRMED(u - 1, committed[i]));
        same_line(u - 1, u, GOES_ON_AT(i, u));
        assert(P2_one_state_a_step || ok)
      :: else -> /* the joiner */
        assert(P6_member_has_the_state || snapshot[i] == 4 * (u - 1) + start[u] + 1);
        STORE_ANEW(i, u)
      fi;
      has[i] = u;
      committed[i] = start[u];
      REACHED(u, start[u]) = REACHED(u, start[u]) | BIT(i)
    :: else ->
      has[i] = 0;
      committed[i] = 0
    fi;
    /* Whose voter goes on from its checkpoint stores it under the new key, whatever became of the process. */
    if
    :: u > 1 && key[u] != key[u - 1] && STORES(i, u) -> STORE_UNDER_KEY(i, u)
    :: else
    fi;
    if :: HAS(members[u], i) && !HAS(members[u - 1], i) -> old = old & ~BIT(i) :: else fi; /* it has joined */
    view[i] = u;
    promised[i] = 0;
    accepted[i] = 0;
#ifndef MUTANT_snapshot_of_another_view
    snapshot[i] = 0;
#endif
#ifdef MUTANT_leaver_ends_at_any_view
    if :: LEAVES(i) -> has[i] = 0; committed[i] = 0 :: else fi;
#endif
    if :: u == V -> has[i] = 0; committed[i] = 0; snapshot[i] = 0; kept[i] = 0; leaving = leaving & ~BIT(i); REACHED(u, start[u]) = 0 :: else fi;
    forget_old()
  }
}

/* --- A joiner --- */

#define CANDIDATE(i, v, b) (HAS(up, i) && !LEAVES(i) && !HAS(members[v], i) && view[i] <= v)
#define AWAITED(v) (ANY(CANDIDATE, v, 0) || leaves < Q)

/* For a joiner, or for a member that is to leave. The senior has not announced its state yet, so no member is beyond it. */
inline quiesce(i) {
  d_step {
    J && has[i] && i == senior[has[i]] && !promised[i] && !quiesced[has[i]] && quiesces < J && has[i] < V && !REACHED(has[i], committed[i] + 1) && AWAITED(has[i]) ->
    quiesces++;
    quiesced[has[i]] = committed[i] + 1;
    printf("= %c quiesces all at state %d of view %d\n", NAME(i), committed[i], has[i])
  }
}

#ifdef PROGRESS
#define RELEASES(v) (SENT_STATE(v) == quiesced[v] -> !JOINER_LIVES(v) : (!ANY(CANDIDATE, v, 0) || leaves < Q))
#else
#define RELEASES(v) 1
#endif
inline release(i) {
  d_step {
    J && has[i] && i == senior[has[i]] && !promised[i] && quiesced[has[i]] && RELEASES(has[i]) ->
    quiesced[has[i]] = 0;
    printf("= %c releases all\n", NAME(i))
  }
}

#ifdef MUTANT_snapshot_before_all
#define MAY_SEND(v) 1
#else
#define MAY_SEND(v) CONFIRMED(v, quiesced[v] - 1)
#endif
#define DONOR_OF(v) (HAS(up, senior[v]) && has[senior[v]] == v && !promised[senior[v]])

/* The joiner has asked; the senior sends the quiesced state, to one joiner at a time. */
inline send_snapshot(i, v) {
  d_step {
    J && v <= newest && CANDIDATE(i, v, 0) && DONOR_OF(v) && quiesced[v] && SENT_STATE(v) != quiesced[v] && MAY_SEND(v) ->
    sent[v] = i + 4 * incarnation[i] + 16 * quiesced[v];
    printf("= state %d of view %d is sent to %c\n", quiesced[v] - 1, v, NAME(i))
  }
}

/* The joiner has the state, and reports it, even if all were released meanwhile. It knows the view by now. */
inline receive_snapshot(i, v) {
  d_step {
    J && v <= newest && CANDIDATE(i, v, 0) && sent[v] && !TOLD(v) && SENT_SEAT(v) == i && SENT_INCARNATION(v) == incarnation[i] ->
    view[i] = v;
    promised[i] = 0;
    accepted[i] = 0;
    has[i] = 0;
    committed[i] = 0;
    snapshot[i] = 4 * v + SENT_STATE(v);
    sent[v] = sent[v] | 64;
    printf("= %c receives state %d of view %d\n", NAME(i), SENT_STATE(v) - 1, v);
    forget_old()
  }
}

#ifdef MUTANT_joiner_drops_state
inline drop_state(i) {
  d_step {
    snapshot[i] ->
    snapshot[i] = 0;
    printf("= %c drops the snapshot\n", NAME(i))
  }
}
#endif

/* --- Deaths --- */

inline restarted(i) {
#ifdef MUTANT_decide_not_recorded
  if :: view[i] > 1 && !promised[i] -> view[i]-- :: else fi;
#endif
  has[i] = 0;
  committed[i] = 0;
  snapshot[i] = 0;
  leaving = leaving & ~BIT(i);
  incarnation[i]++;
#ifdef MUTANT_ballot_reused
  if :: promised[i] > accepted[i] && OWNER(AT(view[i], promised[i])) == i -> promised[i] = accepted[i] :: else fi;
#endif
#if defined(MUTANT_forget_vote) || defined(MUTANT_forget_promise)
  promised[i] = 0;
#endif
#ifdef MUTANT_forget_vote
  accepted[i] = 0;
#endif
  skip
}

/* Without PROGRESS a restart is at once, for no other process has to act. */
#ifdef PROGRESS
#define WORTH_IT(i) (view[i] < V)
#define GOES_DOWN(i) up = up & ~BIT(i); rising = rising | BIT(i)
#else
#ifdef MUTANT_decide_not_recorded
#define WORTH_IT(i) 1
#else
#define WORTH_IT(i) (has[i] || snapshot[i] || promised[i]) /* others have nothing to lose */
#endif
#define GOES_DOWN(i) skip
#endif

inline crash(i) {
  d_step {
    C && HAS(up, i) && crashes < C && WORTH_IT(i) ->
    crashes++;
    restarted(i);
    GOES_DOWN(i);
    printf("= %c crashes\n", NAME(i))
  }
}

inline rise(i) {
  d_step {
    HAS(rising, i) ->
    up = up | BIT(i);
    rising = rising & ~BIT(i);
    printf("= %c is started again\n", NAME(i))
  }
}

inline stay_away(i) {
  d_step {
    C && (HAS(up, i) || HAS(rising, i)) && crashes < C ->
    crashes++;
    if :: HAS(up, i) -> restarted(i) :: else fi;
    up = up & ~BIT(i);
    rising = rising & ~BIT(i);
    printf("= %c is gone for good\n", NAME(i))
  }
}

inline wipe(i) {
  d_step {
    W && HAS(up, i) && crashes < C && wipes < W && view[i] ->
    crashes++;
    wipes++;
    restarted(i);
    GOES_DOWN(i);
    view[i] = 0;
    promised[i] = 0;
    accepted[i] = 0;
    kept[i] = 0;
    born[i] = incarnation[i];
    printf("= %c crashes, its directory is wiped\n", NAME(i));
    forget_old()
  }
}

/* The directory is put back as it was before the promise, or a view before. What it told since was heard: where it was not,
   nobody alive can refuse the vote (daemon/membership/view_change.h). */
inline restore(i) {
  d_step {
    R && HAS(up, i) && crashes < C && restores < R && view[i] && (promised[i] || view[i] > 1) ->
    crashes++;
    restores++;
    restarted(i);
    GOES_DOWN(i);
    if :: promised[i] == 0 -> view[i]-- :: else fi;
    promised[i] = 0;
    accepted[i] = 0;
    old = old | BIT(i);
    printf("= %c crashes, its directory is restored\n", NAME(i))
  }
}

inline kill_all() {
  d_step {
    KA && kills < KA ->
    kills++;
    for (x : 0 .. N - 1) { if :: HAS(up, x) && view[x] < V -> restarted(x); GOES_DOWN(x) :: else fi }
    printf("= all are killed\n")
  }
}

/* --- The seats --- */

#define ORDINARY(i, b) :: propose(i, b, 0)
#ifdef LEAVEOUT
#define SHORTER(i, b) :: propose(i, b, 1) :: propose(i, b, 2) SHORTER3(i, b)
#if N > 2
#define SHORTER3(i, b) :: propose(i, b, 4)
#else
#define SHORTER3(i, b)
#endif
#else
#define SHORTER(i, b)
#endif
#ifdef ORDER
#define ORDERED(i, b) :: propose_by_order(i, b)
#else
#define ORDERED(i, b)
#endif
#define BALLOT(i, b) :: claim(i, b) :: promise(i, b) ORDINARY(i, b) SHORTER(i, b) :: propose_joiner(i, b) :: propose_checkpoint(i, b) ORDERED(i, b) :: accept(i, b)

#define SNAPSHOT(i, v) :: send_snapshot(i, v) :: receive_snapshot(i, v)

proctype seat(byte me) {
end:
  do
  :: commit(me)
#if C + KA + Q > 0 && !defined(MUTANT_not_asked_anew)
  :: promise_anew(me)
#endif
  BALLOT(me, 1)
#if B > 1
  BALLOT(me, 2)
#endif
#if B > 2
  BALLOT(me, 3)
#endif
#if B > 3
  BALLOT(me, 4)
#endif
#if B > 4
  BALLOT(me, 5)
#endif
#if W > 0
  :: learn(me, 1)
#endif
  :: learn(me, 2)
#if V > 2
  :: learn(me, 3)
#endif
#if V > 3
  :: learn(me, 4)
#endif
#if V > 4
  :: learn(me, 5)
#endif
#if L > 1
  :: keep(me, 0)
  :: keep(me, 1)
#if S > 1
  :: keep(me, 2)
#endif
#endif
#if J > 0
  :: quiesce(me)
  :: release(me)
  SNAPSHOT(me, 1)
#if V > 2
  SNAPSHOT(me, 2)
#endif
#if V > 3
  SNAPSHOT(me, 3)
#endif
#if V > 4
  SNAPSHOT(me, 4)
#endif
#ifdef MUTANT_joiner_drops_state
  :: drop_state(me)
#endif
#endif
#if Q > 0
  :: leave(me, 0)
  :: leave(me, 1)
  :: end_process(me)
#endif
#if C > 0
  :: crash(me)
#ifdef PROGRESS
  :: stay_away(me)
#endif
#endif
#ifdef PROGRESS
  :: rise(me)
#endif
#if W > 0
  :: wipe(me)
#endif
#if R > 0
  :: restore(me)
#endif
  od
}

#if KA > 0
proctype power() {
end:
  do
  :: kill_all()
  od
}
#endif

#ifdef PROGRESS
/* Nothing can happen any more. If the voters that are up are a quorum of the newest view known to the living (all voters, where
   none has memory and no person orders it), its members are up and have finished. Planned leaves never take the quorum away.
   This is not looked at where a bound was used up. */
#ifdef ORDER
#define ENOUGH(set, v) QUORUM(set, v)
#else
#define ENOUGH(set, v) ((set) == members[v])
#endif
inline look_at_the_end() {
  w = 0;
  for (x : 0 .. N - 1) { if :: HAS(up, x) && view[x] > w -> w = view[x] :: else fi }
  y = 0; /* voters that are up */
  z = 0; /* members that are up, with state, and do not leave */
  ok = 1;
  for (x : 0 .. N - 1) {
    if :: HAS(up, x) && VOTER(x, w) -> y = y | BIT(x) :: else fi;
    if :: HAS(up, x) && has[x] == w && !LEAVES(x) -> z = z | BIT(x) :: else fi;
    ok = ok && (!HAS(members[w], x) || (HAS(up, x) && has[x] == w && committed[x] == S && !promised[x] && !LEAVES(x)))
  }
  if
  :: w == 0 || w == V -> skip
  :: w && w < V && owner[AT(w, B)] -> skip
  :: w && w < V && !owner[AT(w, B)] && (z -> QUORUM(y, w) || !(crashes + kills) : (ENOUGH(y, w) && key[w] < L)) ->
    assert(P5_members_go_on || ok)
  :: else -> skip
  fi
}
#endif

init {
  d_step {
    newest = 1;
    members[1] = (1 << M) - 1;
    key[1] = 1;
    up = ALL_SEATS;
    for (x : 0 .. M - 1) {
      view[x] = 1;
      has[x] = 1;
      SINCE(1, x) = 1;
      kept[x] = (L > 1 -> 4 : 0)
    }
    REACHED(1, 0) = (1 << M) - 1;
    x = 0
  }
  atomic {
    run seat(0);
    run seat(1);
#if N > 2
    run seat(2);
#endif
#if N > 3
    run seat(3);
#endif
#if KA > 0
    run power();
#endif
    skip
  }
#ifdef PROGRESS
  timeout;
  d_step { look_at_the_end() }
#endif
}
