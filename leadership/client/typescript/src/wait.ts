import { setMaxListeners } from "node:events";
import type { Clock } from "./clock.ts";

/**
 * @internal Calls the function when the signal is aborted from now on, and returns how to end that. One signal may end
 * everything that a program does, so it may have any number of listeners without a warning.
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (!signal) return () => {};
  setMaxListeners(Infinity, signal); // 0 would do, but getMaxListeners of Node.js 20 throws then
  signal.addEventListener("abort", call);
  return () => signal.removeEventListener("abort", call);
}

/** @internal Returns a controller that is aborted with the first of the signals, for its reason, and how to end that. */
export function linked(...signals: (AbortSignal | undefined)[]): { controller: AbortController; leave: () => void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort(signals.find((s) => s?.aborted)?.reason);
  const leave = signals.map((s) => onAbort(s, abort));
  if (signals.some((s) => s?.aborted)) abort();
  return { controller, leave: () => leave.forEach((end) => end()) };
}

/** @internal Resolves when the time is over, or a signal is aborted. It never rejects. */
export function sleep(clock: Pick<Clock, "timer">, milliseconds: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const cancel of cancels) cancel();
      resolve();
    };
    const cancels = [clock.timer(milliseconds, done), ...signals.map((s) => onAbort(s, done))];
    if (signals.some((s) => s?.aborted)) done();
  });
}
