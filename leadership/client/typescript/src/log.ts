/** Takes what the client tells of its leases. The details contain no secret. */
export type Log = (level: "info" | "warn" | "error", message: string, details: Record<string, unknown>) => void;

/** Returns a log that never throws: a mistake in logging must not keep a lease from its renewals. */
export function harmless(log: Log | undefined): Log {
  return (...told) => {
    try {
      log?.(...told);
    } catch {
      // there is no one to tell
    }
  };
}
