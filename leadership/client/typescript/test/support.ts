import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

/** The program regent, which the Go test that starts these tests has built. */
export const binary = process.env["REGENT_BINARY"] ?? "regent";

/** A folder that is removed after the test. */
export function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "regent-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A running `regent serve`. */
export class Server {
  url = "";
  #child: ChildProcess | undefined;
  readonly #store: string;

  constructor(store: string) {
    this.#store = store;
  }

  /** Starts it; again at the same address. */
  async start(): Promise<void> {
    const listen = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^REGENT_|_EMULATOR_HOST$/.test(name)));
    const child = spawn(binary, ["serve", "--store", this.#store, "--listen", listen], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    let log = "";
    const serving = new Promise<void>((resolve, reject) => {
      const take = (part: Buffer): void => {
        log += part;
        const [, address] = /"message":"serving","address":"([^"]+)"/.exec(log) ?? [];
        if (!address) return;
        this.url = `http://${address}`;
        resolve();
      };
      child.stdout!.on("data", take);
      child.stderr!.on("data", take);
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`regent serve has ended with ${code}: ${log}`)));
    });
    await serving;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  }
}

/** Starts a server that the end of the test stops. */
export async function serve(t: TestContext, store = "memory:"): Promise<Server> {
  const server = new Server(store);
  t.after(() => server.kill());
  await server.start();
  return server;
}

/** A TCP proxy that can cut its connections, and refuse new ones. */
export class Line {
  url = "";
  refuses = false;
  accepted = 0;
  readonly #target: () => string;
  readonly #sockets = new Set<net.Socket>();
  readonly #listener = net.createServer((inner) => this.#join(inner));

  constructor(target: () => string) {
    this.#target = target;
  }

  async open(): Promise<void> {
    this.#listener.listen(0, "127.0.0.1");
    await once(this.#listener, "listening");
    this.url = `http://127.0.0.1:${(this.#listener.address() as net.AddressInfo).port}`;
  }

  #join(inner: net.Socket): void {
    if (this.refuses) {
      inner.destroy();
      return;
    }
    this.accepted++;
    const { hostname, port } = new URL(this.#target());
    const outer = net.connect(Number(port), hostname);
    for (const [from, to] of [[inner, outer], [outer, inner]] as const) {
      this.#sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }

  /** Ends all connections at once. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.#listener.close();
  }
}

/** Opens a line to a server that the end of the test closes. */
export async function line(t: TestContext, target: () => string): Promise<Line> {
  const opened = new Line(target);
  t.after(() => opened.close());
  await opened.open();
  return opened;
}

/** Starts an HTTP server that answers by a script, and returns its URL. */
export async function scripted(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
}

/** Answers with a JSON document. */
export function reply(response: ServerResponse, status: number, document: object): void {
  const type = status === 200 ? "application/json" : "application/problem+json";
  response.writeHead(status, { "content-type": type }).end(JSON.stringify(document));
}

/** One message of a stream, as it is sent. */
export function message(m: { name?: string; id?: string | number; data: object }): string {
  return `${m.name ? `event: ${m.name}\n` : ""}${m.id === undefined ? "" : `id: ${m.id}\n`}data: ${JSON.stringify(m.data)}\n\n`;
}

/** Returns the first items of a loop, and leaves it. */
export async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  if (count === 0) return taken;
  for await (const item of items) {
    taken.push(item);
    if (taken.length === count) break;
  }
  return taken;
}

/** Waits until the condition holds. The limit of the test ends a wait that would not. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}
