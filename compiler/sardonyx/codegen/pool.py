"""The thread pool, as LLVM IR: one for the process, made when a launch first has work for it.

``sdx_launch(context, task, args, range, cost)`` calls ``task(args, begin, end)`` for pieces that together
are [0, range).  How it works:

- One launch owns the pool at a time (``sdx.owner``).  A launch that finds it taken, by another Python
  thread or because a task launches itself, runs on its own thread: no launch ever waits for another.
- The owner writes the job, opens the **gate** and starts to work; workers join through the gate (its low
  16 bits count them) and claim chunks from ``sdx.next``.  Nobody has to join: a worker that the system does
  not run in time costs nothing but its help.  When no chunk is left, the owner closes the gate and waits
  for those inside, so a job's memory is never touched after its launch.
- A worker spins for a while after its last job, then parks on ``sdx.epoch``, which every job increments.
  Waking it costs the owner some 15 us and the worker is there 25 us later, so small launches make do with
  the workers that are awake until the launches of the run (context word 7 adds them up) are worth it.
  Spinning threads yield the processor now and then: on a busy machine they may stand on that of the thread
  they wait for.
  The waiting of the operating system (``sdx.wait``, ``sdx.wake``) is the only part that differs by system.
- ``sdx_stop()`` ends the workers and waits for each, so that their code may go away (a library that is
  unloaded calls it).  It takes the pool for ever: launches that come later run on their own threads.
- A forked child has no workers.  The pool is marked with the process id, and a launch in another process
  starts it anew (``sdx.pid``; while that happens it holds the negative id, and other launches run serially).

Chunks depend on the number of threads; results do not, because a kernel computes each unit of its range
for itself.
"""

from __future__ import annotations

__all__ = ["CHUNKS_PER_THREAD", "GRAIN", "SMALLEST", "WAKING", "pool_text", "unloading_text"]

# The unit of cost is a hundredth of a nanosecond (see `Kernel.cost`): 1 << 20 is some 10 us.
GRAIN = 1 << 19  # the least cost of a chunk: 5 us, against 0.3 us to dispatch to a worker that spins
SMALLEST = 2 * GRAIN  # below, the pool does not pay
WAKING = 6 << 20  # the launches of a run together cost this much (60 us) before workers are made or woken
CHUNKS_PER_THREAD = 4  # more than one evens out the threads' speeds
_SPINS = 3072  # pauses before a worker parks or the owner sleeps: some 80 us
_PAUSES = 64  # between two offers to let another thread have the processor

_MOST = 255  # workers
_OPEN, _WAITED, _LIMIT_SHIFT, _INSIDE = 1 << 31, 1 << 30, 16, 0xFFFF  # the gate's fields

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # the number of Linux's system call


def pool_text(triple: str) -> str:
    """The LLVM text that defines ``sdx_launch`` for a target."""
    machine = triple.split("-")[0]
    if not _has_pool(triple):
        return _SERIAL + _SERIAL_LAUNCH
    pause, declarations, default = _machine(machine)
    return "".join(
        (
            declarations,
            _waiting(_FUTEX[machine]),
            _STATE.format(most=_MOST),
            _SERIAL,
            _LAUNCH.format(
                smallest=SMALLEST,
                grain=GRAIN,
                waking=WAKING,
                per_thread=CHUNKS_PER_THREAD,
                most=_MOST,
                open=_signed(_OPEN),
            ),
            _acquire(),
            _START,
            _STOP,
            _finish(pause),
            _worker(pause, default),
        )
    )


def unloading_text(triple: str, then: str = "") -> str:
    """The LLVM text by which a library stops its pool when the system unloads it, or the process ends.

    ``then`` names a function of the same module that is called last.
    """
    if not _has_pool(triple):
        return ""
    kind = "{ i32, ptr, ptr }"
    last = f"  call void @{then}()\n" if then else ""
    return (
        "declare void @sdx_stop()\n"
        f"define internal void @sdx.unload() nounwind {{\n  call void @sdx_stop()\n{last}  ret void\n}}\n"
        f"@llvm.global_dtors = appending global [1 x {kind}] "
        f"[{kind} {{ i32 65535, ptr @sdx.unload, ptr null }}]\n"
    )


def _has_pool(triple: str) -> bool:
    return "linux" in triple and triple.split("-")[0] in _FUTEX


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >= 1 << 31 else bits


def _machine(machine: str) -> tuple[str, str, str]:
    """How to pause in a spin loop, declarations, and how to set the floating-point state to the default."""
    if machine == "x86_64":
        return (
            "call void @llvm.x86.sse2.pause()",
            "declare void @llvm.x86.sse2.pause()\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
            "%control = alloca i32\n  store i32 8064, ptr %control\n"
            "  call void @llvm.x86.sse.ldmxcsr(ptr %control)",
        )
    if machine == "aarch64":
        return (
            "call void @llvm.aarch64.hint(i32 1)",
            "declare void @llvm.aarch64.hint(i32)\ndeclare void @llvm.aarch64.set.fpcr(i64)\n",
            "call void @llvm.aarch64.set.fpcr(i64 0)",
        )
    return 'fence syncscope("singlethread") seq_cst', "", ""


def _waiting(futex: int) -> str:
    """Sleep while a word has a value, wake sleepers: Linux's futex (private to the process)."""
    return f"""
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()

define internal void @sdx.wait(ptr %word, i32 %value) nounwind {{
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i64 128, i32 %value, ptr null, ptr null, i64 0)
  ret void
}}

define internal void @sdx.wake(ptr %word, i32 %most) nounwind {{
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i64 129, i32 %most, ptr null, ptr null, i64 0)
  ret void
}}
"""


# Words that different threads write often stand in cache lines of their own.
_STATE = """
@sdx.owner = internal global i32 0, align 128
@sdx.gate = internal global i32 0, align 128
@sdx.next = internal global i64 0, align 128
@sdx.epoch = internal global i32 0, align 128
@sdx.parked = internal global i32 0, align 128
@sdx.job = internal global [5 x i64] zeroinitializer, align 128 ; task, arguments, range, chunk, chunks
@sdx.pid = internal global i32 0, align 128
@sdx.workers = internal global i32 0, align 128
@sdx.ending = internal global i32 0
@sdx.threads = internal global [{most} x i64] zeroinitializer ; what the system calls the workers
"""

_SERIAL = """
define internal void @sdx.serial(ptr %task, ptr %args, i64 %range) nounwind {
  %any = icmp sgt i64 %range, 0
  br i1 %any, label %run, label %done
run:
  call void %task(ptr %args, i64 0, i64 %range)
  br label %done
done:
  ret void
}
"""

_SERIAL_LAUNCH = """
define void @sdx_launch(ptr %context, ptr %task, ptr %args, i64 %range, i64 %cost) nounwind {
  tail call void @sdx.serial(ptr %task, ptr %args, i64 %range)
  ret void
}

define void @sdx_stop() nounwind {
  ret void
}
"""

# Chunks: as many as the cost allows, at most four a thread, a multiple of the threads where there are more.
_LAUNCH = """
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.uadd.sat.i64(i64, i64)

define void @sdx_launch(ptr %context, ptr %task, ptr %args, i64 %range, i64 %cost) nounwind {{
  %threads.at = getelementptr i64, ptr %context, i64 1
  %threads = load i64, ptr %threads.at
  %one = icmp sle i64 %threads, 1
  %small = icmp slt i64 %cost, {smallest}
  %narrow = icmp sle i64 %range, 1
  %or = or i1 %one, %small
  %alone = or i1 %or, %narrow
  br i1 %alone, label %serial, label %count
count:
  %spent.at = getelementptr i64, ptr %context, i64 7
  %spent.before = load i64, ptr %spent.at
  %spent = call i64 @llvm.uadd.sat.i64(i64 %spent.before, i64 %cost)
  store i64 %spent, ptr %spent.at
  %worth = icmp uge i64 %spent, {waking}
  %made = load atomic i32, ptr @sdx.workers monotonic, align 4
  %asleep = load atomic i32, ptr @sdx.parked monotonic, align 4
  %awake = icmp sgt i32 %made, %asleep
  %help = or i1 %worth, %awake
  br i1 %help, label %split, label %serial
split:
  %affordable = udiv i64 %cost, {grain}
  %useful = mul i64 %threads, {per_thread}
  %most = call i64 @llvm.umin.i64(i64 %affordable, i64 %useful)
  %pieces = call i64 @llvm.umin.i64(i64 %most, i64 %range)
  %rest = urem i64 %pieces, %threads
  %few = icmp ult i64 %pieces, %threads
  %even = sub i64 %pieces, %rest
  %goal = select i1 %few, i64 %pieces, i64 %even
  %range.up = add i64 %range, %goal
  %range.last = sub i64 %range.up, 1
  %chunk = udiv i64 %range.last, %goal
  %range.up2 = add i64 %range, %chunk
  %range.last2 = sub i64 %range.up2, 1
  %chunks = udiv i64 %range.last2, %chunk
  %team = call i64 @llvm.umin.i64(i64 %threads, i64 %chunks)
  %helpers = sub i64 %team, 1
  %wanted.wide = call i64 @llvm.umin.i64(i64 %helpers, i64 {most})
  %wanted = trunc i64 %wanted.wide to i32
  %mine = call i1 @sdx.acquire()
  br i1 %mine, label %own, label %serial
own:
  br i1 %worth, label %start, label %open
start:
  call void @sdx.start(i32 %wanted)
  br label %open
open:
  %task.word = ptrtoint ptr %task to i64
  %args.word = ptrtoint ptr %args to i64
  store i64 %task.word, ptr @sdx.job
  store i64 %args.word, ptr getelementptr (i64, ptr @sdx.job, i64 1)
  store i64 %range, ptr getelementptr (i64, ptr @sdx.job, i64 2)
  store i64 %chunk, ptr getelementptr (i64, ptr @sdx.job, i64 3)
  store i64 %chunks, ptr getelementptr (i64, ptr @sdx.job, i64 4)
  store atomic i64 0, ptr @sdx.next monotonic, align 8
  %limit = shl i32 %wanted, 16
  %gate = or i32 %limit, {open}
  store atomic i32 %gate, ptr @sdx.gate release, align 4
  %epoch = atomicrmw add ptr @sdx.epoch, i32 1 seq_cst
  %parked = load atomic i32, ptr @sdx.parked seq_cst, align 4
  %sleeping = icmp sgt i32 %parked, 0
  %rouse = and i1 %sleeping, %worth
  br i1 %rouse, label %wake, label %work
wake:
  call void @sdx.wake(ptr @sdx.epoch, i32 %wanted)
  br label %work
work:
  call void @sdx.claim()
  call void @sdx.finish()
  store atomic i32 0, ptr @sdx.owner release, align 4
  ret void
serial:
  tail call void @sdx.serial(ptr %task, ptr %args, i64 %range)
  ret void
}}

; Runs chunks of the open job until none is left.
define internal void @sdx.claim() nounwind {{
  %task.word = load i64, ptr @sdx.job
  %task = inttoptr i64 %task.word to ptr
  %args.word = load i64, ptr getelementptr (i64, ptr @sdx.job, i64 1)
  %args = inttoptr i64 %args.word to ptr
  %range = load i64, ptr getelementptr (i64, ptr @sdx.job, i64 2)
  %chunk = load i64, ptr getelementptr (i64, ptr @sdx.job, i64 3)
  %chunks = load i64, ptr getelementptr (i64, ptr @sdx.job, i64 4)
  br label %again
again:
  %number = atomicrmw add ptr @sdx.next, i64 1 monotonic
  %left = icmp slt i64 %number, %chunks
  br i1 %left, label %run, label %done
run:
  %begin = mul i64 %number, %chunk
  %after = add i64 %begin, %chunk
  %end = call i64 @llvm.umin.i64(i64 %after, i64 %range)
  call void %task(ptr %args, i64 %begin, i64 %end)
  br label %again
done:
  ret void
}}
"""


def _acquire() -> str:
    """Take the pool if it is free; after a fork, first make it as new."""
    return """
declare i32 @getpid()

define internal i1 @sdx.acquire() nounwind {
  %pid = call i32 @getpid()
  %known = load atomic i32, ptr @sdx.pid acquire, align 4
  %same = icmp eq i32 %known, %pid
  br i1 %same, label %take, label %foreign
foreign:
  %busy.mark = sub i32 0, %pid
  %busy = icmp eq i32 %known, %busy.mark
  br i1 %busy, label %no, label %mark
mark:
  %claimed = cmpxchg ptr @sdx.pid, i32 %known, i32 %busy.mark acquire monotonic
  %won = extractvalue { i32, i1 } %claimed, 1
  br i1 %won, label %reset, label %no
reset:
  store atomic i32 0, ptr @sdx.owner monotonic, align 4
  store atomic i32 0, ptr @sdx.gate monotonic, align 4
  store atomic i32 0, ptr @sdx.parked monotonic, align 4
  store atomic i32 0, ptr @sdx.workers monotonic, align 4
  store atomic i32 0, ptr @sdx.ending monotonic, align 4
  store atomic i32 %pid, ptr @sdx.pid release, align 4
  br label %take
take:
  %taken = cmpxchg ptr @sdx.owner, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  ret i1 %mine
no:
  ret i1 false
}
"""


# Signals are blocked while a worker is made: it inherits the mask, so handlers run on the program's threads.
_START = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)

; Makes workers until there are `wanted`, or the system refuses.  Only the owner calls it.
define internal void @sdx.start(i32 %wanted) nounwind {
  %now = load atomic i32, ptr @sdx.workers monotonic, align 4
  %enough = icmp sge i32 %now, %wanted
  br i1 %enough, label %done, label %more
more:
  %all = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  %r1 = call i32 @sigfillset(ptr %all)
  %r2 = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %before)
  br label %make
make:
  %have = phi i32 [ %now, %more ], [ %next, %made ]
  %thread = getelementptr i64, ptr @sdx.threads, i32 %have
  %code = call i32 @pthread_create(ptr %thread, ptr null, ptr @sdx.worker, ptr null)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %restore, label %made
made:
  %next = add i32 %have, 1
  store atomic i32 %next, ptr @sdx.workers monotonic, align 4
  %full = icmp sge i32 %next, %wanted
  br i1 %full, label %restore, label %make
restore:
  %r4 = call i32 @pthread_sigmask(i32 2, ptr %before, ptr null)
  br label %done
done:
  ret void
}
"""


# Only a run under way keeps the pool from being taken, so waiting for it ends.  A process that ends may have
# runs in other threads; a run that takes longer than these offers is left alone, and its workers with it.
_STOP = """
; Ends the workers; the pool is not used again.
define void @sdx_stop() nounwind {
entry:
  %pid = call i32 @getpid()
  %known = load atomic i32, ptr @sdx.pid acquire, align 4
  %here = icmp eq i32 %known, %pid
  br i1 %here, label %take, label %done
take:
  %tries = phi i32 [ 0, %entry ], [ %tries.next, %wait ]
  %taken = cmpxchg ptr @sdx.owner, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %end, label %wait
wait:
  %r1 = call i32 @sched_yield()
  %tries.next = add i32 %tries, 1
  %patient = icmp slt i32 %tries.next, 1000000
  br i1 %patient, label %take, label %done
end:
  store atomic i32 1, ptr @sdx.ending seq_cst, align 4
  %epoch = atomicrmw add ptr @sdx.epoch, i32 1 seq_cst
  call void @sdx.wake(ptr @sdx.epoch, i32 2147483647)
  %workers = load atomic i32, ptr @sdx.workers monotonic, align 4
  br label %next
next:
  %i = phi i32 [ 0, %end ], [ %after, %join ]
  %more = icmp slt i32 %i, %workers
  br i1 %more, label %join, label %done
join:
  %at = getelementptr i64, ptr @sdx.threads, i32 %i
  %thread = load i64, ptr %at
  %r2 = call i32 @pthread_join(i64 %thread, ptr null)
  %after = add i32 %i, 1
  br label %next
done:
  ret void
}
"""


def _finish(pause: str) -> str:
    """Close the gate; wait for the workers inside: spin, then sleep until the last one leaves."""
    return f"""
define internal void @sdx.finish() nounwind {{
entry:
  %closed = atomicrmw and ptr @sdx.gate, i32 {_INSIDE} acq_rel
  br label %look
look:
  %spins = phi i32 [ 0, %entry ], [ %spins.next, %spin ], [ %spins.next, %offer ],
                   [ {_SPINS}, %sleep ], [ {_SPINS}, %announce ]
  %gate = load atomic i32, ptr @sdx.gate acquire, align 4
  %inside = and i32 %gate, {_INSIDE}
  %empty = icmp eq i32 %inside, 0
  br i1 %empty, label %done, label %wait
wait:
  %patient = icmp slt i32 %spins, {_SPINS}
  br i1 %patient, label %spin, label %announce
spin:
  {pause}
  %spins.next = add i32 %spins, 1
  %part = and i32 %spins.next, {_PAUSES - 1}
  %long = icmp eq i32 %part, 0
  br i1 %long, label %offer, label %look
offer:
  %r = call i32 @sched_yield()
  br label %look
announce:
  %waited = or i32 %gate, {_WAITED}
  %swapped = cmpxchg ptr @sdx.gate, i32 %gate, i32 %waited acq_rel monotonic
  %marked = extractvalue {{ i32, i1 }} %swapped, 1
  br i1 %marked, label %sleep, label %look
sleep:
  call void @sdx.wait(ptr @sdx.gate, i32 %waited)
  br label %look
done:
  ret void
}}
"""


def _worker(pause: str, default: str) -> str:
    """A worker's life.  `seen` is the epoch of the last job joined: it is not joined twice."""
    return f"""
define internal ptr @sdx.worker(ptr %nothing) nounwind {{
entry:
  {default}
  br label %idle
idle:
  %seen = phi i32 [ -1, %entry ], [ %epoch.joined, %left ], [ %seen, %park ]
  br label %look
look:
  %spins = phi i32 [ 0, %idle ], [ %spins.next, %spin ], [ %spins.next, %offer ]
  %epoch = load atomic i32, ptr @sdx.epoch acquire, align 4
  %gate = load atomic i32, ptr @sdx.gate acquire, align 4
  %open = icmp slt i32 %gate, 0
  %new = icmp ne i32 %epoch, %seen
  %inside = and i32 %gate, {_INSIDE}
  %limit.up = lshr i32 %gate, {_LIMIT_SHIFT}
  %limit = and i32 %limit.up, {_MOST}
  %room = icmp ult i32 %inside, %limit
  %both = and i1 %open, %new
  %go = and i1 %both, %room
  br i1 %go, label %join, label %pass
pass:
  %ending = load atomic i32, ptr @sdx.ending seq_cst, align 4
  %end = icmp ne i32 %ending, 0
  br i1 %end, label %stop, label %stay
stop:
  ret ptr null
stay:
  %patient = icmp slt i32 %spins, {_SPINS}
  br i1 %patient, label %spin, label %park
spin:
  {pause}
  %spins.next = add i32 %spins, 1
  %part = and i32 %spins.next, {_PAUSES - 1}
  %long = icmp eq i32 %part, 0
  br i1 %long, label %offer, label %look
offer:
  %r = call i32 @sched_yield()
  br label %look
park:
  %p1 = atomicrmw add ptr @sdx.parked, i32 1 seq_cst
  call void @sdx.wait(ptr @sdx.epoch, i32 %epoch)
  %p2 = atomicrmw sub ptr @sdx.parked, i32 1 seq_cst
  br label %idle
join:
  %gate.in = add i32 %gate, 1
  %swapped = cmpxchg ptr @sdx.gate, i32 %gate, i32 %gate.in acq_rel monotonic
  %joined = extractvalue {{ i32, i1 }} %swapped, 1
  br i1 %joined, label %work, label %spin
work:
  %epoch.joined = load atomic i32, ptr @sdx.epoch monotonic, align 4
  call void @sdx.claim()
  %before = atomicrmw sub ptr @sdx.gate, i32 1 acq_rel
  %was = and i32 %before, {_WAITED + _INSIDE}
  %last = icmp eq i32 %was, {_WAITED + 1}
  br i1 %last, label %call, label %left
call:
  call void @sdx.wake(ptr @sdx.gate, i32 1)
  br label %left
left:
  br label %idle
}}
"""
