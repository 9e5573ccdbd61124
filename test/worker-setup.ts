import fc from "fast-check";

/** Properties try the same values in every run; another seed tries others, and a greater number more of them. */
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: Number(process.env["FAST_CHECK_SEED"] ?? 7),
  numRuns: Number(process.env["FAST_CHECK_RUNS"] ?? 40),
});

// A worker loads each test file under a new name, which a compile cache would keep for ever; the programs it starts use one.
delete process.env["NODE_DISABLE_COMPILE_CACHE"];
