/*
 * The handoff protocol, checked by Spin. Two attempts of one request, each with a writer of its own, at one receiver
 * whose pool has one page. Writers and the receiver are made of kvtransfer/handoff/transitions.def, the table that a test
 * compares the C++ state machines with.
 *
 * Around them: the router, whose calls (Open, Start, Close, Abort) travel on channels of their own, so that they arrive
 * before or after any message of the handoff; puts that land at any time until they are flushed; and, at any moment,
 * FAULTS of these: a connection that breaks, a writer that dies, a receiver that dies and comes back without memory.
 * A process that is stopped is one that takes no step for a while: that is among all the interleavings.
 *
 * SHM chooses the transport. Over TCP the receiver performs the writes, so that closing the connection is the end of
 * them; through shared memory the writer does, and only its death is.
 *
 * Checked: no put lands in a page that is not granted to its attempt (I1), a committed page is complete, a writer's
 * engine is told once how its handoff ended and nothing of it is put any more by then, and wherever everything
 * comes to rest both sides of both attempts have ended, the router knows, and the page is back (I2, I3).
 */

#define ATTEMPTS 2
#ifndef FAULTS
#define FAULTS 1
#endif
#define FREE 255

#ifdef SHM
#define CAN_REVOKE(a) (writer_dead[a] || writer_let_go[a]) /* dead, or it let go of the memory and said so */
#else
#define CAN_REVOKE(a) true
#endif

/* States. */
#define W_New 0
#define W_Reserving 1
#define W_Queued 2
#define W_Granted 3
#define W_FlushReport 4
#define W_FlushCommit 5
#define W_FlushRevoke 6
#define W_FlushAbort 7
#define W_FlushFinished 8
#define W_Flushed 9
#define W_Committing 10
#define W_Ended 11
#define R_None 0
#define R_Open 1
#define R_Queued 2
#define R_Granted 3
#define R_Revoking 4
#define R_Received 5

/* Messages, and the events that their arrival is. */
#define M_Nothing 0
#define M_Reserve 1
#define M_Queued 2
#define M_Granted 3
#define M_Refused 4
#define M_CancelReserve 5
#define M_Commit 6
#define M_Committed 7
#define M_CommittedError 8
#define M_Revoke 9
#define M_Aborted 10
#define M_AbortedFinished 11
#define E_Queued M_Queued
#define E_Granted M_Granted
#define E_Refused M_Refused
#define E_Committed M_Committed
#define E_CommittedError M_CommittedError
#define E_Revoke M_Revoke
#define E_Reserve M_Reserve
#define E_CancelReserve M_CancelReserve
#define E_Commit M_Commit
#define E_Aborted M_Aborted
#define E_AbortedFinished M_AbortedFinished
/* Events that are no messages. */
#define E_GrantedUnusable 20
#define E_Start 21
#define E_AbortCancelled 22
#define E_AbortFinished 23
#define E_PutLayer 24
#define E_CommitSequence 25
#define E_FlushDone 26
#define E_FlushFailed 27
#define E_PeerRevoked 28
#define E_Open 29
#define E_ReserveWithRoom 30
#define E_ReserveTooLarge 31
#define E_Room 32
#define E_Unservable 33
#define E_CommitUnfit 34
#define E_Close 35
#define E_FlushPuts 36
#define E_PeerGivenUp 37

/* What engines are told. */
#define T_Nothing 0
#define T_Queued 1
#define T_Granted 2
#define T_Flushed 3
#define T_Finish 4
#define T_Fail 5
#define T_Release 6
#define T_Failed 7
#define T_Finished 8
#define T_Received 9

/* What else is done. */
#define D_Nothing 0
#define D_Put 1
#define D_Flush 2
#define D_Disconnect 3
#define D_Take 4
#define D_Release 5
#define D_HandOver 6

byte writer[ATTEMPTS];        /* state */
byte receiver[ATTEMPTS];      /* state */
byte page = FREE;             /* whose it is: the attempt that it is granted to or decoded for */
byte puts[ATTEMPTS];          /* under way */
byte unput[ATTEMPTS];         /* blocks that the writer still has to put */
byte written[ATTEMPTS];       /* blocks that landed */
byte told[ATTEMPTS];          /* how the writer's engine was told that it ended; T_Nothing: not yet */
byte heard[ATTEMPTS];         /* what the decode engine was told */
bool connected[ATTEMPTS];     /* messages of this attempt's connection arrive */
bool writer_gave_up[ATTEMPTS];  /* as they do not; over TCP they are revoked at once */
bool writer_let_go[ATTEMPTS];   /* of the receiver's memory; over TCP the receiver is revoked by that */
bool receiver_gave_up[ATTEMPTS];
bool receiver_knows[ATTEMPTS];  /* that the writer is revoked */
bool writer_dead[ATTEMPTS];
bool handed_over[ATTEMPTS];   /* the page belongs to the decode engine */
bool router_done;
byte faults = FAULTS;  /* still to come */

chan to_receiver[ATTEMPTS] = [3] of { byte };
chan to_writer[ATTEMPTS] = [3] of { byte };
/* From the router. */
chan calls_receiver[ATTEMPTS] = [2] of { byte };
chan calls_writer[ATTEMPTS] = [2] of { byte };

inline tell_writer(a, what) {
  if
  :: (what >= T_Finish) ->
     assert(told[a] == T_Nothing);
     assert(puts[a] == 0);  /* its pages are its own again */
     told[a] = what
  :: else -> skip
  fi
}

inline writer_step(a, event) {
  d_step {
    message = M_Nothing; does = D_Nothing; tells = T_Nothing;
    if
#define WRITER(from, e, to, sends, d, t) \
    :: (writer[a] == W_##from && event == E_##e) -> writer[a] = W_##to; message = M_##sends; does = D_##d; tells = T_##t;
#include "kvtransfer/handoff/transitions.def"
    :: else -> skip
    fi;
    if
    :: (message != M_Nothing && connected[a]) -> to_receiver[a]!message
    :: else -> skip
    fi;
    if
    :: (does == D_Put) -> puts[a]++; unput[a]--
    :: (does == D_Disconnect) -> connected[a] = false
    :: else -> skip
    fi;
    tell_writer(a, tells);
    message = M_Nothing; does = D_Nothing; tells = T_Nothing
  }
}

inline receiver_step(a, event) {
  d_step {
    message = M_Nothing; does = D_Nothing; tells = T_Nothing;
    if
#define RECEIVER(from, e, to, sends, d, t) \
    :: (receiver[a] == R_##from && event == E_##e) -> receiver[a] = R_##to; message = M_##sends; does = D_##d; tells = T_##t;
#include "kvtransfer/handoff/transitions.def"
    :: else -> skip
    fi;
    if
    :: (message != M_Nothing && connected[a]) -> to_writer[a]!message
    :: else -> skip
    fi;
    if
    :: (does == D_Take) -> assert(page == FREE); page = a; written[a] = 0
    :: (does == D_Release) -> assert(page == a); page = FREE
    :: (does == D_HandOver) -> assert(page == a && written[a] == 1 && puts[a] == 0); handed_over[a] = true
    :: else -> skip
    fi;
    if
    :: (tells != T_Nothing) -> heard[a] = tells
    :: else -> skip
    fi;
    message = M_Nothing; does = D_Nothing; tells = T_Nothing
  }
}

/* The worker that hands over: its engine, its half of the handoff and its half of the transport. */
proctype Writer(byte a) {
  byte message, does, tells, event;
end:
  do
  :: atomic { !writer_dead[a] && len(calls_writer[a]) > 0 -> calls_writer[a]?event; writer_step(a, event) }
  :: atomic { !writer_dead[a] && connected[a] && len(to_writer[a]) > 0 -> to_writer[a]?event;
       if
       :: (event == E_Granted) -> if :: event = E_Granted :: event = E_GrantedUnusable fi
       :: else -> skip
       fi;
       writer_step(a, event) }
  :: atomic { !writer_dead[a] && writer[a] == W_Granted && unput[a] > 0 -> writer_step(a, E_PutLayer) }
  /* The last layer is put; or the first token was the last one. */
  :: atomic { !writer_dead[a] && writer[a] == W_Granted && unput[a] == 0 -> writer_step(a, E_CommitSequence) }
  :: atomic { !writer_dead[a] && writer[a] == W_Granted -> writer_step(a, E_AbortFinished) }
  /* Or the sequence goes on until all has landed: then it comes to rest, or it ends where it is. */
  :: atomic { !writer_dead[a] && writer[a] == W_Granted && unput[a] == 0 -> writer_step(a, E_FlushPuts) }
  :: atomic { !writer_dead[a] && writer[a] == W_FlushReport -> writer_step(a, E_AbortFinished) }
  :: atomic { !writer_dead[a] && writer[a] == W_Flushed -> writer_step(a, E_CommitSequence) }
  :: atomic { !writer_dead[a] && writer[a] == W_Flushed -> writer_step(a, E_AbortFinished) }
  /* A flush is complete when everything has landed; one on a broken connection fails, and reads nothing any more. */
  :: atomic { !writer_dead[a] && writer[a] >= W_FlushReport && writer[a] <= W_FlushFinished && puts[a] == 0 &&
              connected[a] -> writer_step(a, E_FlushDone) }
  :: atomic { !writer_dead[a] && writer[a] >= W_FlushReport && writer[a] <= W_FlushFinished && !connected[a] ->
       puts[a] = 0; writer_step(a, E_FlushFailed) }
#ifdef SHM
  :: atomic { !writer_dead[a] && !connected[a] && !writer_gave_up[a] ->
       writer_gave_up[a] = true; writer_step(a, E_PeerGivenUp) }
  /* The receiver may map memory of the writer's: that it is gone may never be proven to the writer. */
  :: atomic { !writer_dead[a] && writer_gave_up[a] && !writer_let_go[a] && puts[a] == 0 -> writer_let_go[a] = true }
#else
  :: atomic { !writer_dead[a] && !connected[a] && !writer_let_go[a] ->
       writer_let_go[a] = true; puts[a] = 0; writer_step(a, E_PeerRevoked) }
#endif
  od
}

/* Puts land in any order with messages. What is on its way in a broken TCP connection may still land until the receiver
 * closes its end. */
proctype Memory(byte a) {
end:
  do
  :: atomic { puts[a] > 0 && !receiver_knows[a] ->
       assert(page == a && (receiver[a] == R_Granted || receiver[a] == R_Revoking));
       puts[a]--; written[a]++ }
  od
}

/* A decode worker. */
proctype Receiver() {
  byte message, does, tells, event, a;
end:
  do
  :: atomic { calls_receiver[0]?event -> a = 0; receiver_step(a, event); a = 0; event = 0 }
  :: atomic { calls_receiver[1]?event -> a = 1; receiver_step(a, event); a = 0; event = 0 }
  :: atomic { !receiver_gave_up[0] && !receiver_knows[0] && len(to_receiver[0]) > 0 -> to_receiver[0]?event; a = 0; goto heard_message }
  :: atomic { !receiver_gave_up[1] && !receiver_knows[1] && len(to_receiver[1]) > 0 -> to_receiver[1]?event; a = 1; goto heard_message }
  :: atomic { receiver[0] == R_Queued && page == FREE -> receiver_step(0, E_Room) }
  :: atomic { receiver[1] == R_Queued && page == FREE -> receiver_step(1, E_Room) }
  /* The page is in quarantine. */
  :: atomic { receiver[1] == R_Queued && page == 0 && !connected[0] -> receiver_step(1, E_Unservable) }
  :: atomic { receiver[0] == R_Queued && page == 1 && !connected[1] -> receiver_step(0, E_Unservable) }
#ifdef SHM
  :: atomic { !connected[0] && !receiver_knows[0] && !receiver_gave_up[0] ->
       receiver_gave_up[0] = true; receiver_step(0, E_PeerGivenUp) }
  :: atomic { !connected[1] && !receiver_knows[1] && !receiver_gave_up[1] ->
       receiver_gave_up[1] = true; receiver_step(1, E_PeerGivenUp) }
#endif
  :: atomic { !connected[0] && !receiver_knows[0] && CAN_REVOKE(0) -> a = 0; goto revoked }
  :: atomic { !connected[1] && !receiver_knows[1] && CAN_REVOKE(1) -> a = 1; goto revoked }
  /* The decode engine is done with the sequence: the router closes it, and the page comes back. */
  :: atomic { handed_over[0] && receiver[0] == R_None -> handed_over[0] = false; assert(page == 0); page = FREE }
  :: atomic { handed_over[1] && receiver[1] == R_None -> handed_over[1] = false; assert(page == 1); page = FREE }
  od;
heard_message:
  atomic {
    if
    :: (event == E_Reserve && page == FREE) -> if :: event = E_ReserveWithRoom :: event = E_ReserveTooLarge fi
    :: (event == E_Reserve && page != FREE) -> if :: event = E_Reserve :: event = E_ReserveTooLarge fi
    :: (event == E_Commit && written[a] == 0) -> event = E_CommitUnfit  /* its checksum says so */
    :: else -> skip
    fi;
    receiver_step(a, event); a = 0; event = 0; goto end
  }
revoked:
  atomic {
#ifndef SHM
    puts[a] = 0;  /* closing the connection discards them */
#endif
    receiver_knows[a] = true; receiver_step(a, E_PeerRevoked); a = 0; event = 0; goto end
  }
}

/* Opens an attempt, submits it, hears how it ends, and may give up at any moment. The second attempt does not wait for
 * the first one's end at the workers. */
proctype Router() {
  byte a = 0;
  do
  :: (a < ATTEMPTS) ->
     calls_receiver[a]!E_Open;
     /* Accepted. */
     (receiver[a] != R_None || heard[a] != T_Nothing || receiver_knows[a]);
     calls_writer[a]!E_Start;
     if
     :: (told[a] != T_Nothing || heard[a] != T_Nothing || writer_dead[a]) -> skip
     :: true -> skip  /* the client cancelled, or a deadline passed */
     fi;
     calls_receiver[a]!E_Close;
     calls_writer[a]!E_AbortCancelled;
     a++
  :: (a == ATTEMPTS) -> break
  od;
  router_done = true
}

proctype Faults() {
  byte a;
end:
  do
  :: atomic { faults > 0 && connected[0] -> faults--; connected[0] = false }
  :: atomic { faults > 0 && connected[1] -> faults--; connected[1] = false }
  :: atomic { faults > 0 && !writer_dead[0] -> faults--; a = 0; goto dies }
  :: atomic { faults > 0 && !writer_dead[1] -> faults--; a = 1; goto dies }
  /* The receiver dies and comes back: its memory, its grants and its connections are gone. */
  :: atomic { faults > 0 && !router_done -> faults--;
       page = FREE; puts[0] = 0; puts[1] = 0; handed_over[0] = false; handed_over[1] = false;
       receiver[0] = R_None; receiver[1] = R_None;
       connected[0] = false; connected[1] = false; receiver_knows[0] = true; receiver_knows[1] = true }
  od;
dies:
  atomic {
    writer_dead[a] = true; writer[a] = W_Ended; connected[a] = false;
    if
    :: (told[a] == T_Nothing) -> told[a] = T_Fail
    :: else -> skip
    fi;
#ifdef SHM
    puts[a] = 0;
#endif
    a = 0; goto end
  }
}

/* Where nothing moves any more. */
proctype AtRest() {
  timeout ->
  assert(router_done);
  assert(receiver[0] == R_None && receiver[1] == R_None);
  assert(writer[0] == W_Ended && writer[1] == W_Ended);
  assert(told[0] != T_Nothing && told[1] != T_Nothing);
  assert(page == FREE)
}

init {
  atomic {
    byte i;
    for (i : 0 .. ATTEMPTS - 1) {
      connected[i] = true;
      unput[i] = 1
    }
    run Writer(0); run Writer(1); run Memory(0); run Memory(1); run Receiver(); run Router(); run Faults(); run AtRest()
  }
}
