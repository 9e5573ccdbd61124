import { spawn, spawnSync } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import type { WriteStream } from "node:tty";
import { outputOf } from "@retinue/hosts/cli/create-real-host.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createPlace, type Place, runInProcess } from "./run-command.ts";

const hasTerminal = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;
const hostile =
  "ok \u001b]52;c;cm0gLXJm\u0007\u001b[2J\u001b[8mhidden\u009b31m \u202eevil\u2066 a\u200bb\u{e0041} \rover";

/** Runs the built command on a terminal and gives what that terminal was sent. */
async function onTerminal(
  { cwd, home }: Place,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
) {
  const command = [process.execPath, join(projectRoot, "bin/retinue.js"), ...words]
    .map((word) => `'${word}'`)
    .join(" ");
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    cwd,
    env: { HOME: home, PATH: process.env["PATH"], TERM: "xterm", RETINUE_LOCAL_MODELS: "0", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let screen = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
  });
  await new Promise((resolve) => child.on("close", resolve));
  return screen;
}

/** What the command in this process sends to a terminal; only the terminal itself is not real. */
async function toTerminal(place: Place, words: readonly string[]) {
  let screen = "";
  const terminal = Object.assign(new EventEmitter(), {
    isTTY: true,
    columns: 100,
    rows: 40,
    write(text: string) {
      screen += text;
      return true;
    },
  }) as unknown as WriteStream; // All that the command uses of one.
  const output = outputOf(terminal, { TERM: "xterm" });
  const host = {
    stdout: output,
    stderr: output,
    stdin: { isTerminal: true, readAll: async () => "", async *lines() {} },
  };
  await runInProcess(place, words, { environment: { TERM: "xterm" }, host });
  return screen;
}

/** What a terminal would act on, besides line breaks, tabs and colours, or show otherwise than it is. */
function dangers(screen: string): readonly string[] {
  const text = screen
    .replaceAll("\r\n", "\n")
    .replace(/\u001b\[(?:0|1|2|22|3[12346]|39)(?:;3[1-6])?m/g, "")
    // What the screen of a run is painted with.
    .replace(/\u001b\[(?:\?(?:2026|25|2004)[hl]|[><][14]?(?:;[01]m|u)|\d*[ABCLM]|[JK])/g, "")
    .replaceAll("\r", "");
  return [
    ...text.matchAll(/[^\n\t\P{Cc}]|[\u200b\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu),
  ].map(([found]) => JSON.stringify(found));
}

describe.skipIf(!hasTerminal)(`on a terminal${hasTerminal ? "" : " (skipped: there is no script)"}`, () => {
  test.each([
    "text",
    "json",
    "stream-json",
  ])("nothing that a model says or calls reaches it as a control sequence, as %s [CLI-6]", async (format) => {
    const place = createPlace();
    const provider = await startFakeProvider({
      script: [
        {
          text: hostile,
          calls: [
            { name: `Tool${hostile}`, input: {} },
            { name: "Read", input: { file_path: `${place.cwd}/${hostile}` } },
            { name: "Bash", input: { command: `echo '${hostile}'`, description: hostile } },
          ],
        },
        hostile,
      ],
    });
    onTestFinished(() => provider[Symbol.asyncDispose]());
    const words = ["-p", "go", "--verbose", "--no-ask", "--output-format", format];
    const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
    const screen = await onTerminal(place, words, environment);
    expect(screen).toContain("hidden");
    expect(dangers(screen)).toEqual([]);
  });

  test("a program that reads the answer gets it as it was said [CLI-1]", async () => {
    const provider = await startFakeProvider({ script: [hostile] });
    onTestFinished(() => provider[Symbol.asyncDispose]());
    const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
    const { out } = await runInProcess(createPlace(), ["-p", "go"], { environment });
    expect(out).toBe(`${hostile}\n`);
  });

  test("nor anything of a project's files, whatever command shows them [CLI-6]", async () => {
    const place = createPlace();
    const text = JSON.stringify(hostile);
    place.write(
      ".claude/agents/a.md",
      `---\nname: a\ndescription: ${text}\ncolor: ${text}\n${text}: 1\n---\n${hostile}\n`,
    );
    place.write(`.claude/agents/${hostile.replaceAll("/", "")}.md`, "---\ndescription: x\n---\n");
    place.write(".claude/skills/s/SKILL.md", `---\ndescription: ${text}\n---\n${hostile}\n`);
    place.write(
      ".mcp.json",
      JSON.stringify({ mcpServers: { [hostile]: { command: hostile, args: [hostile] } } }),
    );
    const hooks = { Stop: [{ matcher: hostile, hooks: [{ type: "command", command: hostile }] }] };
    place.write(
      ".claude/settings.json",
      JSON.stringify({ hooks, env: { [hostile]: hostile }, permissions: { allow: [`Bash(${hostile})`] } }),
    );
    for (const words of [
      ["agents", "list"],
      ["trust", "--show"],
    ])
      expect({ words, found: dangers(await onTerminal(place, words)) }).toEqual({ words, found: [] });
    for (const words of [
      ["agents", "show", "a"],
      ["agents", "check"],
      ["skills"],
      ["mcp", "list"],
      ["permissions", "list"],
      ["doctor"],
      ["plan", "a", "--model", "offline"],
      ["agents", "show", hostile],
    ]) {
      const screen = await toTerminal(place, words);
      expect(screen).not.toBe("");
      expect({ words, found: dangers(screen) }).toEqual({ words, found: [] });
    }
  });
});
