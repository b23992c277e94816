import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseHeld, RegentError, errorClasses } from "../src/errors.ts";
import type { Schemas } from "../src/wire.ts";

// does not compile unless there is a class for each code
const codes: Record<Schemas["Code"], true> = Object.fromEntries(Object.keys(errorClasses).map((c) => [c, true])) as never;

test("an error has the code of its class, or of its problem", () => {
  assert.equal(new LeaseHeld("x").code, "LEASE_HELD");
  assert.equal(new RegentError("x").code, "");
  assert.ok(Object.keys(codes).length > 20);
});
