import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { median, printTable } from "./measure.ts";
import { programFile, runSubject } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

const samples = 40;
const warmUp = 5;

/**
 * From the answer in which the lead calls SendMessage to the request that the idle teammate makes with the message in it,
 * both seen at the provider: the lead reads the answer, runs the tool, and the teammate wakes, records the mail and asks its model.
 */
export async function benchTeamDelivery(): Promise<boolean> {
  const times = {
    here: await deliveries("in-process"),
    process: await deliveries("process"),
  };
  const against = "20 ms";
  const row = (what: string, own: readonly number[], unit: number) => ({
    what,
    milliseconds: median(own),
    against: `${unit} ms`,
    ratio: median(own) / unit,
    limit: 1,
  });
  const slowest = (own: readonly number[]): number => [...own].toSorted((a, b) => b - a)[1] ?? 0;
  return printTable("From SendMessage to the request of an idle teammate, median", [
    row("teammate in the lead's process", times.here, 20),
    row("teammate in a process of its own", times.process, 150),
    {
      what: "in the lead's process, second slowest",
      milliseconds: slowest(times.here),
      against,
      ratio: slowest(times.here) / 20,
    },
    {
      what: "in a process of its own, second slowest",
      milliseconds: slowest(times.process),
      against: "150 ms",
      ratio: slowest(times.process) / 150,
    },
  ]);
}

const isMember = ({ system }: ModelRequest): boolean =>
  system.join("\n").includes('You are "ada", a teammate');
const last = ({ messages }: ModelRequest): string => JSON.stringify(messages.at(-1));

/** The lead sends a message, waits until the teammate is idle again, and sends the next. */
async function deliveries(teammateMode: "in-process" | "process"): Promise<readonly number[]> {
  using place = createWorkplace();
  const times: number[] = [];
  let sentAt = Number.NaN;
  let count = 0;
  const lead = (request: ModelRequest): StepAnswer => {
    const text = last(request);
    if (request.messages.length === 1)
      return { calls: [{ name: "Agent", input: { description: "work", prompt: "Wait.", name: "ada" } }] };
    if (!text.includes("is idle and available") || count === samples + warmUp) return { text: "Waiting." };
    count += 1;
    sentAt = performance.now();
    return { calls: [{ name: "SendMessage", input: { to: "ada", message: `ping ${count}` } }] };
  };
  const member = (request: ModelRequest): StepAnswer => {
    if (last(request).includes(`ping ${count}\\n`)) {
      if (count > warmUp) times.push(performance.now() - sentAt);
    }
    return { text: `pong ${count}` };
  };
  await using provider = await startFakeProvider({
    keepsRequests: false,
    deltaSize: 1000,
    respond: (request) => (isMember(request) ? member(request) : lead(request)),
  });
  const settings = JSON.stringify({ teams: true, teammateMode });
  await runSubject(
    { arguments: [programFile, "-p", "Begin.", "--settings", settings], url: provider.url },
    place,
  );
  if (times.length !== samples) throw new Error(`${times.length} of ${samples} messages arrived.`);
  return times;
}
