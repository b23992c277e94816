// Drives the TypeScript package for the cases of test/clients, by the protocol of its doc.go.
import { createInterface } from "node:readline";
import { Client, LeaseLost, RegentError, systemClock, type Lease } from "regent-client";

const tickEvery = 20; // milliseconds
const afterwards = 10; // ticks once the lease is over

const { REGENT_SERVER = "", REGENT_ELECTION: election = "", REGENT_CANDIDATE: candidate = "", REGENT_LEASE: duration = "" } = process.env;
const options = JSON.parse(process.env.REGENT_DRIVER || "{}") as { idle?: boolean; try?: boolean; again?: boolean };
const clock = systemClock();
const cancelled = new AbortController(); // what is under way
const stopped = new AbortController();
const beside = new Set<Promise<void>>(); // watches and calls
let client: Client;
let leading: Lease | undefined;

const now = (): number => Math.round(clock.now() * 1e6);

function write(event: Record<string, unknown>): void {
  process.stdout.write(JSON.stringify(event) + "\n");
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function fail(call: string, error: unknown): void {
  const code = cancelled.signal.aborted ? "CANCELLED" : (error instanceof RegentError && error.code) || "OTHER";
  write({ event: "error", call, code, detail: String(error) });
}

/** Leads once, or until it is told to end. */
async function campaign(): Promise<void> {
  do {
    write({ event: "asking", at: now() });
    let lost = false;
    let token = 0;
    try {
      await lead(async (lease) => {
        leading = lease;
        lost = await body(lease);
        token = lease.token;
        leading = undefined;
      });
      if (!lost) write({ event: "released", at: now(), token });
    } catch (e) {
      if (!lost) fail("lead", e);
    }
    if (!lost) return;
  } while (options.again && !cancelled.signal.aborted);
}

async function lead(body: (lease: Lease) => Promise<void>): Promise<void> {
  const { signal } = cancelled;
  if (!options.try) return await client.run(election, body, { lease: duration, signal });
  await using lease = await client.lead(election, { lease: duration, signal, wait: 0 });
  await body(lease);
}

/** Ticks until it is told to end, or the lease is over. Returns whether the lease was lost. */
async function body(lease: Lease): Promise<boolean> {
  const { signal } = lease;
  write({ event: "leading", at: now(), token: lease.token });
  let lost = false;
  for (let left = afterwards; left > 0; ) {
    const valid = tick(lease);
    if ((cancelled.signal.aborted && signal.aborted) || stopped.signal.aborted) return lost;
    if (lost) {
      left--;
    } else if (!valid) {
      while (!signal.aborted) await pause(tickEvery);
      lost = true;
      const why: unknown = signal.reason;
      const code = why instanceof LeaseLost ? why.end : "OTHER";
      write({ event: "lost", at: now(), token: lease.token, code, detail: String(why) });
    }
    await pause(tickEvery);
  }
  return lost;
}

/** Asks the lease, after it has read the clock. */
function tick(lease: Lease): boolean {
  const at = now();
  const { token } = lease;
  const valid = lease.valid();
  write({ event: "tick", at, token, valid, remainingMs: Math.floor(lease.remaining()) });
  return valid;
}

/** Writes the events of the election until the driver ends. */
async function watch(after: string | undefined): Promise<void> {
  const end = AbortSignal.any([cancelled.signal, stopped.signal]);
  try {
    for await (const seen of client.observe(election, { ...(after ? { after } : {}), signal: end })) {
      write({ event: "seen", revision: seen.revision, type: seen.type ?? "", token: seen.fencingToken });
    }
  } catch (e) {
    if (stopped.signal.aborted) return;
    fail("watch", e);
    if (options.idle) cancelled.abort();
  }
}

async function call(kind: string): Promise<void> {
  try {
    await make(kind);
    write({ event: "done", call: kind });
  } catch (e) {
    fail(kind, e);
  }
}

async function follow(signal: AbortSignal): Promise<void> {
  let n = 0;
  for await (const { kind, index } of client.follow(election, 0, { signal })) {
    write({ event: "item", revision: index, type: kind });
    if (++n === 5) break;
  }
}

async function make(kind: string): Promise<unknown> {
  const { signal } = cancelled;
  if (kind === "read") return client.read(election, { signal, strong: true });
  if (kind === "members") return client.members(election, { signal });
  if (kind === "follow") return follow(signal);
  if (kind === "propose") {
    const { decision } = await client.propose(election, "ask", "ask", { wait: "5m", signal });
    return write({ event: "item", type: decision?.verdict });
  }
  if (!leading) throw new Error("it does not lead");
  if (kind === "checkpoint") return leading.checkpoint.put("here", { signal });
  if (kind === "newer") return leading.checkpoint.put("there", { signal });
  if (kind === "decide") return leading.decide("ask", "accepted", "", { signal });
  if (kind === "begin") return write({ event: "item", type: (await leading.beginEffect("once", { signal })).state });
  if (kind === "finish") return leading.finishEffect("once", "here", { signal });
  if (kind === "append") return (await leading.journal({ signal })).append({ data: "here" }, { signal });
  if (kind === "handover") return leading.handOver({ signal });
  if (kind === "check") return client.checkToken(election, leading.token, { signal });
  throw new Error(`unknown kind of call ${kind}`);
}

function obey(command: string): void {
  const [verb, argument] = command.split(" ");
  if (verb === "cancel") {
    cancelled.abort();
  } else if (verb === "stop") {
    stopped.abort();
    if (!leading) cancelled.abort();
  } else if (verb === "report" && leading) {
    leading.report({ progress: Number(argument) });
  } else if (verb === "watch" || (verb === "call" && argument)) {
    const work = (verb === "watch" ? watch(argument) : call(argument!)).finally(() => beside.delete(work));
    beside.add(work);
  } else {
    process.stderr.write(`driver: wrong command, or it does not lead: ${command}\n`);
    process.exit(1);
  }
}

async function run(): Promise<void> {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", obey);
  lines.on("close", () => process.exit(1)); // the test is gone
  try {
    client = new Client(REGENT_SERVER, { candidate, log: (level, message, details) => console.error(level, message, details) });
  } catch (e) {
    fail("lead", e);
    return;
  }
  if (options.idle) await new Promise((resolve) => cancelled.signal.addEventListener("abort", resolve));
  else await campaign();
  cancelled.abort();
  while (beside.size > 0) await Promise.all(beside);
}

await run();
process.stdout.write(JSON.stringify({ event: "end" }) + "\n", () => process.exit(0));
