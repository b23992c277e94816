export * from "./errors.ts";
export { systemClock, type Clock } from "./clock.ts";
