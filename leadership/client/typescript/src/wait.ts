import type { Clock } from "./clock.ts";

/** @internal Resolves when the time is over, or a signal is aborted. It never rejects. */
export function sleep(clock: Clock, milliseconds: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      for (const s of signals) s?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.timer(milliseconds, done);
    for (const s of signals) {
      s?.addEventListener("abort", done);
      if (s?.aborted) return done();
    }
  });
}
