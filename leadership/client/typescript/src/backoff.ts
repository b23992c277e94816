import { RegentError } from "./errors.ts";

const minPause = 100;
const maxPause = 10_000;
/** The longest Retry-After that is honoured. */
const maxRetryAfter = 60_000;

/**
 * @internal Computes the pause before the next try. It doubles after each failure and is random, so that
 * clients that failed together do not return together.
 */
export class Backoff {
  #failures = 0;

  /** Returns how many milliseconds to wait after the error. */
  after(error: unknown): number {
    const d = Math.min(minPause * 2 ** Math.min(this.#failures++, 10), maxPause);
    const asked = error instanceof RegentError ? Math.min(error.retryAfter, maxRetryAfter) : 0;
    return d / 2 + Math.random() * (d / 2) + asked;
  }

  reset(): void {
    this.#failures = 0;
  }
}
