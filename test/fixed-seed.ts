import fc from "fast-check";

/** Properties try the same values in every run; another seed tries others. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env["FAST_CHECK_SEED"] ?? 7) });
