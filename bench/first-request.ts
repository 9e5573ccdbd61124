import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { median, printTable } from "./measure.ts";
import { programFile, runSubject, subjectFile } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

const rounds = 21;
const warmUp = 3;

/** From the start of the process to its first request at the provider, against a script that does nothing else. */
export async function benchFirstRequest(): Promise<boolean> {
  using place = createWorkplace();
  let arrived = Number.NaN;
  await using provider = await startFakeProvider({
    keepsRequests: false,
    respond: () => {
      arrived = performance.now();
      return "Hello.";
    },
  });
  const subjects = {
    nothing: ["-e", "0"],
    floor: [subjectFile("floor-request.mjs"), "hello"],
    bare: [subjectFile("first-request.mjs"), "hello"],
    program: [programFile, "-p", "hello", "--model", "claude-sonnet-4-5"],
    trusting: [programFile, "-p", "hello", "--model", "claude-sonnet-4-5", "--trust"],
  } as const;
  const times: Record<keyof typeof subjects, number[]> = {
    nothing: [],
    floor: [],
    bare: [],
    program: [],
    trusting: [],
  };
  const ends: typeof times = {
    nothing: [],
    floor: [],
    bare: [],
    program: [],
    trusting: [],
  };
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const name of ["nothing", "floor", "bare", "program", "trusting"] as const) {
      const start = performance.now();
      await runSubject({ arguments: subjects[name], url: provider.url }, place);
      if (round < 0) continue;
      times[name].push(arrived - start);
      ends[name].push(performance.now() - start);
    }
  }
  const against = "SDK script";
  const row = (what: string, own: readonly number[], theirs: readonly number[]) => ({
    what,
    milliseconds: median(own),
    against,
    ratio: median(own) / median(theirs),
  });
  return printTable("From process start to the first request", [
    row("node -e 0, to its end", ends.nothing, times.bare),
    row("script on plain node:http", times.floor, times.bare),
    row("script that only imports the SDK", times.bare, times.bare),
    { ...row("retinue -p", times.program, times.bare), limit: 1.3 },
    { ...row("retinue -p --trust, which asks git", times.trusting, times.bare), limit: 1.3 },
    row("the script, to its end", ends.bare, ends.bare),
    row("retinue -p, to its end", ends.program, ends.bare),
    { ...row("retinue -p", times.program, ends.nothing), against: "node -e 0" },
    { ...row("retinue -p", times.program, times.floor), against: "script on plain node:http" },
  ]);
}
