import { openSync, readSync } from "node:fs";

/**
 * What counts deadlines. Times are in milliseconds from any beginning. A Clock must not be set by
 * anything, must not go back, and should run while the machine is suspended.
 */
export interface Clock {
  /** The time, rounded down: the true time is from now() to now() + resolution. */
  now(): number;
  /** How much later than now() the true time may be, in milliseconds. */
  readonly resolution: number;
  /** Calls the function once after that time or later, and returns how to cancel that. */
  timer(milliseconds: number, call: () => void): () => void;
}

/**
 * Returns the clock of this machine.
 *
 * On Linux it is CLOCK_BOOTTIME, as /proc/uptime shows it, with a resolution of 10 ms: it runs
 * while the machine sleeps, and nothing sets it.
 *
 * JavaScript offers no such clock elsewhere. There it is process.hrtime, which may stand still
 * while the machine sleeps; whenever the wall clock has advanced further since the last look, that
 * is counted instead. So a sleep counts, a clock that is set forward ends leases early, and one that
 * is set back prolongs none. A sleep during which the clock is set back by as much is not noticed:
 * then only the fencing token helps.
 */
export function systemClock(): Clock {
  uptime ??= uptimeClock();
  return uptime ?? new ElapsedClock(hrtime, Date.now);
}

/** @internal */
export function timer(milliseconds: number, call: () => void): () => void {
  const t = setTimeout(call, Math.max(0, Math.ceil(milliseconds)));
  return () => clearTimeout(t);
}

let uptime: Clock | undefined; // one open file is enough for a process

/** Reads /proc/uptime: seconds with two decimals. Returns undefined where there is none. */
function uptimeClock(): Clock | undefined {
  const buffer = Buffer.alloc(64);
  const read = (file: number): number => {
    const length = readSync(file, buffer, 0, buffer.length, 0);
    const [, seconds, hundredths] = /^(\d+)\.(\d\d) /.exec(buffer.toString("latin1", 0, length)) ?? [];
    return Number(seconds) * 1000 + Number(hundredths) * 10;
  };
  let file: number;
  try {
    file = openSync("/proc/uptime", "r");
    if (Number.isNaN(read(file))) return undefined;
  } catch {
    return undefined; // another system, or a runtime that does not permit it
  }
  return {
    resolution: 10,
    timer,
    now(): number {
      const now = read(file);
      if (Number.isNaN(now)) throw new Error("/proc/uptime is not readable any more");
      return now;
    },
  };
}

function hrtime(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/** @internal Counts the greater of what two clocks say has passed. */
export class ElapsedClock implements Clock {
  /** The wall clock counts whole milliseconds, and is adjusted slowly. */
  readonly resolution = 5;
  readonly timer = timer;
  readonly #monotonic: () => number;
  readonly #wall: () => number;
  #ahead: number; // of the wall clock before the monotonic one, as far as it is counted
  #slept = 0;

  constructor(monotonic: () => number, wall: () => number) {
    this.#monotonic = monotonic;
    this.#wall = wall;
    this.#ahead = wall() - monotonic();
  }

  now(): number {
    const monotonic = this.#monotonic();
    const ahead = this.#wall() - monotonic;
    if (ahead > this.#ahead + 2) this.#slept += ahead - this.#ahead;
    if (Math.abs(ahead - this.#ahead) > 2) this.#ahead = ahead;
    return monotonic + this.#slept;
  }
}
