import fc from "fast-check";

/** Properties try the same values in every run; another seed tries others, and a greater number more of them. */
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: Number(process.env["FAST_CHECK_SEED"] ?? 7),
  numRuns: Number(process.env["FAST_CHECK_RUNS"] ?? 40),
});
