// Loaded into every measured process alike: writes down at the end what the process took.
import { writeFileSync } from "node:fs";

process.once("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage = { cpuMs: (userCPUTime + systemCPUTime) / 1000, memoryMiB: maxRSS / 1024 };
  writeFileSync(process.env.BENCH_USAGE_FILE, JSON.stringify(usage));
});
