import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { ElapsedClock, systemClock } from "../src/clock.ts";

test("on Linux the clock is CLOCK_BOOTTIME", { skip: !existsSync("/proc/uptime") }, () => {
  const clock = systemClock();
  const uptime = (): number => Math.round(Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]) * 1000);
  const before = uptime();
  const now = clock.now();
  assert.ok(now >= before && now <= uptime());
  assert.equal(clock.resolution, 10);
});

test("on Linux all clocks share one open file", { skip: !existsSync("/proc/self/fd") }, () => {
  systemClock();
  const before = readdirSync("/proc/self/fd").length;
  for (let i = 0; i < 20; i++) systemClock();
  assert.ok(readdirSync("/proc/self/fd").length < before + 10);
});

test("on Linux the clock counts the time of a suspension", { skip: !existsSync("/proc/uptime") }, (t) => {
  // a time namespace has the same effect as a suspension of an hour
  const within = (...command: string[]): string => execFileSync("unshare", ["--user", "--map-root-user", "--fork", "--time", "--boottime", "3600", ...command], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  try {
    within("true");
  } catch {
    return t.skip("no time namespace can be had here");
  }
  const script = `import { systemClock } from ${JSON.stringify(new URL("../src/clock.js", import.meta.url).href)}; console.log(systemClock().now())`;
  const ahead = Number(within(process.execPath, "--input-type=module", "--eval", script)) - systemClock().now();
  assert.ok(ahead > 3_500_000, `it is ahead by ${ahead} ms`);
});

test("the clock does not go back", () => {
  const clock = systemClock();
  for (let last = clock.now(), i = 0; i < 1000; i++) {
    const now = clock.now();
    assert.ok(now >= last);
    last = now;
  }
});

/** Returns an ElapsedClock and how to move what it reads. */
function elapsed(): { clock: ElapsedClock; pass: (monotonic: number, wall: number) => number } {
  let monotonic = 5_000;
  let wall = 1_700_000_000_000;
  const clock = new ElapsedClock(() => monotonic, () => wall);
  const begun = clock.now();
  return {
    clock,
    pass: (m, w) => {
      monotonic += m;
      wall += w;
      return clock.now() - begun;
    },
  };
}

test("elsewhere the clock counts a sleep by the wall clock", () => {
  const { pass } = elapsed();
  assert.equal(pass(1_000, 1_000), 1_000);
  assert.equal(pass(10, 3_600_010), 3_601_010);
  assert.equal(pass(1_000, 1_000), 3_602_010);
});

test("elsewhere a wall clock that is set back prolongs nothing, and a sleep after it counts", () => {
  const { pass } = elapsed();
  assert.equal(pass(1_000, -7_200_000), 1_000);
  assert.equal(pass(1_000, 1_000), 2_000);
  assert.equal(pass(0, 60_000), 62_000);
});

test("elsewhere small steps of the wall clock neither add up nor are lost beyond the resolution", () => {
  const { clock, pass } = elapsed();
  let now = 0;
  let wall = 0;
  for (let i = 1; i <= 10_000; i++) {
    const shown = Math.floor(i * 0.1 * 1.0005); // whole milliseconds, fast by 0.05 %
    now = pass(0.1, shown - wall);
    wall = shown;
  }
  assert.ok(Math.abs(now - 1_000) <= clock.resolution, `${now} after 1000`);
});
