import { checkFunction } from "./wire.ts";

/** Takes what the client tells of its leases. The details contain no secret. */
export type Log = (level: "info" | "warn" | "error", message: string, details: Record<string, unknown>) => void;

/** Returns a log that never throws: a mistake in logging must not keep a lease from its renewals. */
export function harmless(log: Log | undefined): Log {
  return guarded(() => {}, log) ?? (() => {}); // there is no one to tell
}

/** @internal Returns a callback of the program that ends nothing of the client's when it throws or rejects: that is logged. */
export function callback<A extends unknown[], R>(log: Log, name: string, call: ((...args: A) => R) | undefined): ((...args: A) => R | undefined) | undefined {
  checkFunction(name, call);
  return guarded((reason) => log("error", `${name} has thrown; the client goes on`, { reason }), call);
}

function guarded<A extends unknown[], R>(failed: (e: unknown) => void, call: ((...args: A) => R) | undefined): ((...args: A) => R | undefined) | undefined {
  return call && ((...args) => {
    try {
      const result = call(...args);
      if (result instanceof Promise) result.catch(failed);
      return result;
    } catch (e) {
      failed(e);
      return undefined;
    }
  });
}
