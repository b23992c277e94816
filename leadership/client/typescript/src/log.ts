/** Takes what the client tells of its leases. The details contain no secret. */
export type Log = (level: "info" | "warn" | "error", message: string, details: Record<string, unknown>) => void;
