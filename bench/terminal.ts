import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type IPty, spawn } from "@lydell/node-pty";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { median } from "./measure.ts";

const bin = fileURLToPath(new URL("../bin/retinue.js", import.meta.url));

/** Shell commands to measure beside it in the same run, with semicolons between them: other programs with a prompt. */
const peers = (process.env["TERMINAL_PEERS"] ?? "").split(";").filter((command) => command.trim() !== "");

interface Figures {
  readonly ready: number;
  readonly echo: number;
  readonly echoStreaming: number;
  readonly bytesPerToken: number;
  readonly cpuPerThousand: number;
  /** CPU of the last third of an answer against the first. */
  readonly growth: number;
  readonly restCpu: number;
  readonly memory: number;
}

const words = 6_000;
const paceMs = 3;

/** The conversation in a real terminal: until the prompt is there, echo, one long answer, at rest. */
export async function benchTerminal(): Promise<boolean> {
  const home = mkdtempSync(join(tmpdir(), "retinue-terminal-"));
  const text = Array.from({ length: words }, (_, at) => `word${at}${at % 12 === 11 ? "\n\n" : " "}`).join("");
  const provider = await startFakeProvider({ respond: () => text, deltaSize: 10, deltaDelayMs: paceMs });
  try {
    mkdirSync(join(home, "project"));
    const bare = await readyTime(
      [process.execPath, "-e", "process.stdout.write('>');setTimeout(()=>0,9e3)"],
      home,
      provider,
    );
    const subjects = [[process.execPath, bin], ...peers.map((command) => ["sh", "-c", command])];
    const all: Figures[] = [];
    for (const command of subjects) {
      const figures = await measure(command, home, provider);
      all.push(figures);
      print(command.join(" ").replace(`${process.execPath} ${bin}`, "retinue"), figures, bare);
    }
    const [own] = all;
    return own !== undefined && isGood(own, bare);
  } finally {
    await provider[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  }
}

function isGood(own: Figures, bare: number): boolean {
  return (
    own.ready <= bare * 5 &&
    own.echoStreaming <= 50 &&
    own.bytesPerToken <= 50 &&
    own.growth <= 1.5 &&
    own.memory <= 110
  );
}

function print(name: string, figures: Figures, bare: number): void {
  const { ready, echo, echoStreaming, bytesPerToken, cpuPerThousand, growth, restCpu, memory } = figures;
  console.log(`\nTerminal: ${name}
  prompt there            ${ready.toFixed(0)} ms, ${(ready / bare).toFixed(2)} x a Node that only writes (limit 5)
  echo p95                ${echo.toFixed(1)} ms at rest, ${echoStreaming.toFixed(1)} ms while an answer comes (limit 50)
  one answer              ${cpuPerThousand.toFixed(0)} ms of CPU and ${(bytesPerToken * 1000).toFixed(0)} bytes for 1,000 tokens (limit 50,000)
  last third to first     ${growth.toFixed(2)} (limit 1.5)
  at rest                 ${restCpu.toFixed(1)} ms of CPU a second, ${memory.toFixed(0)} MiB (limit 110)`);
}

async function readyTime(command: readonly string[], home: string, provider: FakeProvider): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const start = performance.now();
    const pty = open(command, home, provider);
    await pty.sees(">");
    times.push(performance.now() - start);
    await pty.close();
  }
  return median(times);
}

async function measure(command: readonly string[], home: string, provider: FakeProvider): Promise<Figures> {
  const ready = await readyTime(command, home, provider);
  const pty = open(command, home, provider);
  await pty.sees(">");
  await wait(1500);
  const echo = await echoTime(pty, 40);
  const before = pty.cpu();
  await wait(3000);
  const restCpu = (pty.cpu() - before) / 3;
  const asked = provider.requests.length;
  pty.type("\u0003");
  pty.type("go\r");
  while (provider.requests[asked] === undefined) await wait(20);
  const bytes = pty.length();
  const samples = [pty.cpu()];
  const echoes: number[] = [];
  while (provider.requests[asked]?.status === "open") {
    echoes.push(await echoTime(pty, 1));
    await wait(200);
    samples.push(pty.cpu());
  }
  const at = (share: number): number => samples[Math.round((samples.length - 1) * share)] ?? 0;
  const [start, one, two, end] = [at(0), at(1 / 3), at(2 / 3), at(1)];
  const echoStreaming = percentile(echoes);
  const figures = {
    ready,
    echo,
    echoStreaming,
    restCpu,
    bytesPerToken: (pty.length() - bytes) / words,
    cpuPerThousand: (end - start) / (words / 1000),
    growth: (end - two) / (one - start),
    memory: pty.memory(),
  };
  await pty.close();
  return figures;
}

async function echoTime(pty: Opened, count: number): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const start = performance.now();
    const seen = pty.next();
    pty.type("q");
    await seen;
    times.push(performance.now() - start);
    await wait(30);
  }
  return percentile(times);
}

function percentile(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * 0.95)] ?? Number.NaN;
}

interface Opened {
  type(text: string): void;
  sees(text: string): Promise<void>;
  /** The next bytes. */
  next(): Promise<void>;
  length(): number;
  /** Milliseconds of CPU so far; MiB in memory. Of the process itself, from Linux. */
  cpu(): number;
  memory(): number;
  close(): Promise<void>;
}

function open([file = "", ...rest]: readonly string[], home: string, provider: FakeProvider): Opened {
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x", RETINUE_LOCAL_MODELS: "0" };
  const child: IPty = spawn(file, [...rest], {
    cols: 100,
    rows: 30,
    cwd: join(home, "project"),
    name: "xterm-256color",
    env: { PATH: process.env["PATH"] ?? "", HOME: home, ...environment },
  });
  let all = "";
  let length = 0;
  const looks = new Set<() => void>();
  child.onData((data) => {
    length += data.length;
    all = (all + data).slice(-20_000);
    for (const look of looks) look();
  });
  const until = (isTrue: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isTrue()) return;
        looks.delete(look);
        resolve();
      };
      looks.add(look);
      look();
    });
  const ended = new Promise<void>((resolve) => child.onExit(() => resolve()));
  return {
    type: (text) => child.write(text),
    sees: (text) => until(() => all.includes(text)),
    next() {
      const before = length;
      return until(() => length > before);
    },
    length: () => length,
    cpu() {
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      return (Number(fields[11]) + Number(fields[12])) * 10;
    },
    memory() {
      const status = readFileSync(`/proc/${child.pid}/smaps_rollup`, "utf8");
      return Number(/^Pss:\s+(\d+)/m.exec(status)?.[1] ?? Number.NaN) / 1024;
    },
    async close() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
