import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "@retinue/core/conversation/message.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepAnswer } from "@retinue/testing/script.ts";
import { projectRoot } from "../../project-files.ts";
import { checkTeam } from "../check-team.ts";
import type { TortureMode } from "./torture-mode.ts";

const memberCount = 8;

/**
 * Eight members in the process of their lead pass `rounds` messages on in a ring, several at the same time. Every message is
 * delivered once and in order, and the memory of the process is reported at a quarter of them and at the end.
 */
export const run: TortureMode = async ({ rounds = 2000, say }) => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "retinue-soak-")));
  const place = { home: join(root, "home"), project: join(root, "project"), sessionId: randomUUID() };
  mkdirSync(join(place.home, ".claude"), { recursive: true });
  mkdirSync(place.project);
  // Long conversations would measure the model's context, not the mail.
  const settings = { teams: true, cleanupPeriodDays: 9 };
  writeFileSync(join(place.home, ".claude/settings.json"), JSON.stringify(settings));
  const sizes: { readonly sent: number; readonly mib: number }[] = [];
  let sent = 0;
  let pid = 0;
  await using provider = await startFakeProvider({
    keepsRequests: false,
    deltaSize: 1000,
    respond(request) {
      const answer = answerSoak(request, { rounds, next: () => (sent += 1) });
      if (sent % Math.ceil(rounds / 8) === 0 && sizes.at(-1)?.sent !== sent)
        sizes.push({ sent, mib: memoryOf(pid) });
      return answer;
    },
  });
  const start = performance.now();
  const { code, output } = await new Promise<{ code: number | null; output: string }>((resolve) => {
    const program = join(projectRoot, "bin/retinue.js");
    const words = ["-p", "Begin.", "--session-id", place.sessionId, "--dangerously-skip-permissions"];
    const child = spawn(process.execPath, [program, ...words], {
      cwd: place.project,
      env: {
        PATH: process.env["PATH"],
        HOME: place.home,
        ANTHROPIC_BASE_URL: provider.url,
        ANTHROPIC_API_KEY: "none",
        RETINUE_LOCAL_MODELS: "0",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    pid = child.pid ?? 0;
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
    child.on("close", (ended) => resolve({ code: ended, output: text }));
  });
  const seconds = (performance.now() - start) / 1000;
  try {
    if (code !== 0) throw new Error(`The lead ended with ${code}: ${output}`);
    const { delivered } = checkTeam(place);
    if (sent < rounds) throw new Error(`Only ${sent} of ${rounds} messages were sent.`);
    say(
      `${memberCount} members, ${sent} messages, ${delivered} deliveries in ${seconds.toFixed(1)} s: each once and in order.`,
    );
    say(`Memory: ${sizes.map((size) => `${size.mib.toFixed(0)} MiB after ${size.sent}`).join(", ")}.`);
    rmSync(root, { recursive: true, force: true, maxRetries: 3 });
    return true;
  } catch (error) {
    say(`FAILED: ${error instanceof Error ? error.message : error} (kept in ${root})`);
    return false;
  }
};

interface Soak {
  readonly rounds: number;
  /** Counts one message more. */
  readonly next: () => number;
}

/** Who gets a message sends one on to the next member, until enough were sent. */
function answerSoak(request: ModelRequest, soak: Soak): StepAnswer {
  const member = /You are "m(\d+)", a teammate/.exec(request.system.join("\n"))?.[1];
  if (member === undefined) return answerLead(request);
  const waiting = unanswered(request.messages);
  if (waiting === 0) return { text: "Passed on." };
  const calls = Array.from({ length: waiting }, () => soak.next())
    .filter((number) => number <= soak.rounds)
    .map((number) => ({
      id: `call-pass-${member}-${number}`,
      name: "SendMessage",
      input: {
        to: `m${(Number(member) + 1) % memberCount}`,
        message: `RING ${number} [call-pass-${member}-${number}]`,
      },
    }));
  return calls.length === 0 ? { text: "Enough." } : { calls };
}

/** How many messages of the ring came with the last message. */
function unanswered(messages: readonly Message[]): number {
  return (JSON.stringify(messages.at(-1)?.content ?? "").match(/RING \d+ \[/g) ?? []).length;
}

function answerLead({ messages }: ModelRequest): StepAnswer {
  const names = Array.from({ length: memberCount }, (_, index) => `m${index}`);
  const prompt = "Pass on what you get. RING 0 [start]";
  if (messages.length === 1)
    return {
      calls: names.map((name) => ({ name: "Agent", input: { description: name, prompt, name } })),
    };
  return { text: "Waiting." };
}

function memoryOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1024;
}
