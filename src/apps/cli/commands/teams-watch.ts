import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { sleep } from "../../../foundation/abortable.ts";
import { sessionFiles } from "../../../journal/session-files.ts";
import { agentOutputFile } from "../../../tasks/agent-output.ts";
import { findMember, stateOf } from "../../../teams/team-config.ts";
import { personName } from "../../../teams/team-names.ts";
import { exitCodeOf } from "../end-signal.ts";
import type { CommandContext } from "../session-options.ts";
import { stripControlCharacters } from "../views/strip-control-characters.ts";
import { memberOf, openNamed } from "./teams.ts";

const lookMs = 200;

/** `retinue teams watch NAME MEMBER`: shows what a member does until it ends; each line that is typed is a message to it. */
export async function teamsWatch(
  { host }: CommandContext,
  { name, member }: { readonly name: string; readonly member: string },
): Promise<number> {
  const team = openNamed(host, name);
  const { taskId = "" } = memberOf(team, member);
  const files = sessionFiles(team.transcripts, team.config.leadSessionId);
  const tail = createTail(agentOutputFile(files, taskId));
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  host.stdout.write(`${member} of ${name}. What you type is sent to it.\n`);
  const typing = sendLines(host.stdin.lines({ signal: stop.signal }), (text) =>
    team.store.send(member, { from: personName, body: text }),
  );
  try {
    while (!stop.signal.aborted) {
      for (const line of tail.read()) host.stdout.write(`${stripControlCharacters(line)}\n`);
      if (hasLeft(host, { name, member })) break;
      await sleep(lookMs, stop.signal).catch(() => undefined);
    }
    for (const line of tail.read()) host.stdout.write(`${stripControlCharacters(line)}\n`);
    host.stdout.write(`${member} does not run any more.\n`);
    return stop.signal.aborted ? exitCodeOf(stop.signal.reason) : 0;
  } finally {
    stop.abort();
    forget();
    await typing;
  }
}

/** It has ended, was shut down, or has no lead any more. */
function hasLeft(
  host: CommandContext["host"],
  { name, member }: { readonly name: string; readonly member: string },
): boolean {
  try {
    const { config, isLed } = openNamed(host, name);
    const entry = findMember(config, member);
    return !isLed || entry === undefined || stateOf(entry) === "ended";
  } catch {
    return true;
  }
}

async function sendLines(lines: AsyncIterable<string>, send: (text: string) => Promise<void>): Promise<void> {
  try {
    for await (const line of lines) if (line.trim() !== "") await send(line.trim());
  } catch {
    // The view continues without what is typed.
  }
}

/** What was added to a file since the last time, in whole lines. */
function createTail(file: string): { read(): readonly string[] } {
  let at = 0;
  let rest = "";
  return {
    read() {
      let descriptor: number;
      try {
        descriptor = openSync(file, "r");
      } catch {
        return [];
      }
      try {
        const bytes = Buffer.alloc(Math.max(0, fstatSync(descriptor).size - at));
        at += readSync(descriptor, bytes, 0, bytes.length, at);
        const lines = (rest + bytes.toString("utf8")).split("\n");
        rest = lines.pop() ?? "";
        return lines;
      } finally {
        closeSync(descriptor);
      }
    },
  };
}
