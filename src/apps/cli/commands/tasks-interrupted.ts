import type { InFlightCall } from "../../../conversation/interrupted-agent.ts";
import { findInterrupted, type Interrupted } from "../../../tasks/find-interrupted.ts";
import { inFlightText } from "../../../tasks/in-flight.ts";
import type { CliHost } from "../cli-host.ts";
import { createPaint } from "../views/colour.ts";
import { describeAge } from "../views/describe-age.ts";
import { stripControlCharacters } from "../views/text-width.ts";
import { transcriptsOf } from "./find-named-task.ts";

/** `retinue tasks --interrupted`: what died with its process, what was in flight, and how to go on with it. */
export async function tasksInterrupted(host: CliHost, { json }: { readonly json: boolean }): Promise<number> {
  const { stdout, stderr } = host;
  const found = await findInterrupted(transcriptsOf(host));
  if (json) {
    const { agents, sessions } = found;
    stdout.write(`${JSON.stringify({ version: 1, tasks: agents, sessions }, undefined, 2)}\n`);
    return 0;
  }
  const parts = describe(found, createPaint(stdout.isColourAllowed), Date.now());
  if (parts.length === 0) stderr.write("Nothing in this folder was interrupted.\n");
  for (const part of parts) stdout.write(`${part}\n`);
  return 0;
}

function describe(
  { agents, sessions }: Interrupted,
  paint: ReturnType<typeof createPaint>,
  now: number,
): readonly string[] {
  const age = (at: number): string => paint.dim(`${describeAge(now - at)} ago`);
  return [
    ...agents.flatMap(({ id, agentType, description, inFlight = [], canResume, lastSignAt }) => [
      `${paint.name(id)}  ${stripControlCharacters(agentType)}  ${stripControlCharacters(description)}  ${age(lastSignAt)}`,
      ...inFlightLines(inFlight),
      canResume === true ? `  go on: retinue resume ${id}` : "  its task was not written down",
    ]),
    ...sessions.flatMap(({ id, title, inFlight, modified }) => [
      `session ${paint.name(id)}  ${stripControlCharacters(title)}  ${age(modified)}`,
      ...inFlightLines(inFlight),
      `  go on: retinue -p --resume ${id} "Go on."`,
    ]),
  ];
}

function inFlightLines(calls: readonly InFlightCall[]): readonly string[] {
  return calls.map((call) => `  in flight: ${stripControlCharacters(inFlightText(call))}`);
}
