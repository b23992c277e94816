/** How much slower than the store's clock a leader's clock may run: one part in 1000. */
const drift = 1000;
const maxLease = 24 * 3_600_000;

/** The least that a clock which is slow by the drift may show after a time. */
function slow(ms: number): number {
  return ms - ms / drift;
}

/**
 * @internal The moment, on the leader's own clock, from which it must not believe that it leads. `sent` is
 * when the request left, read before it left; `waited` how long it stood in line, by a server's clock, so
 * that the drift counts twice there; `left` what the reply says is left of the lease; `margin` the time that
 * the leader needs to stop. All in milliseconds.
 */
export function deadline(sent: number, waited: number, left: number, margin: number): number {
  return Math.floor(sent + slow(slow(waited) + left) - margin);
}

/** @internal The part of a lease that deadlines count with. */
export interface Remains {
  /** Milliseconds until it ends. */
  left: number;
  /** Milliseconds that it lasts after each heartbeat. */
  duration: number;
}

/**
 * @internal What a leader may believe of one lease, on its own clock: it leads until a deadline. Only a
 * successful answer moves the deadline, and never back. Once the belief has ended it stays so. Each `now`
 * is no earlier than the true time, and each `sent` no later.
 */
export class Belief {
  readonly margin: number;
  #deadline: number;
  #over = false;

  constructor(sent: number, now: number, waited: number, answer: Remains, margin: number) {
    this.margin = margin;
    this.#deadline = this.#until(sent, Math.max(0, Math.min(waited, now - sent)), answer);
    this.left(now);
  }

  /** An answer that claims more than a lease can have is cut to that. */
  #until(sent: number, waited: number, { left, duration }: Remains): number {
    return deadline(sent, waited, Math.min(left, duration, maxLease), this.margin);
  }

  /** Takes the answer to a renewal that left at `sent`, unless the deadline has passed meanwhile. */
  renewed(sent: number, now: number, answer: Remains): void {
    if (this.left(now) > 0) this.#deadline = Math.max(this.#deadline, this.#until(sent, 0, answer));
  }

  /** The time until the deadline; 0 from the deadline on, even if the clock goes back. */
  left(now: number): number {
    this.#over ||= !(now < this.#deadline);
    return this.#over ? 0 : this.#deadline - now;
  }

  get deadline(): number {
    return this.#deadline;
  }

  /** The earliest moment at which the lease can have ended in the store. */
  get leaseEnd(): number {
    return this.#deadline + this.margin;
  }
}
