import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { Step } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";
import { createPlace, type Place, runCommand, runInProcess } from "./run-command.ts";

const hook = { Stop: [{ hooks: [{ type: "command", command: "touch ran" }] }] };
const hasTerminal = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;
const stateOf = ({ home }: Place) => JSON.parse(readFileSync(join(home, ".claude.json"), "utf8"));

/** One prompt to a model on this machine that says what the steps say. */
async function print(
  place: Place,
  steps: readonly Step[],
  arguments_: readonly string[],
  run = runInProcess,
) {
  const provider = await startFakeProvider({ script: steps });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const environment = { ANTHROPIC_BASE_URL: provider.url, ANTHROPIC_API_KEY: "x" };
  const words = ["-p", "go", "--output-format", "json", ...arguments_];
  const { out } = await run(place, words, { environment });
  const answer = JSON.stringify(provider.requests[1]?.request.messages.at(-1));
  return { result: JSON.parse(out), answer };
}

const bash = (command: string): Step => ({ calls: [{ name: "Bash", input: { command } }] });

describe("what a call gets, from the command line", () => {
  test("permissions test agrees with what a run does [PRM-9]", async () => {
    const place = createPlace();
    const rules = ["--allowedTools", "Bash(touch *)", "--disallowedTools", "Bash(rm *)"];
    for (const [command, decision] of [
      ["touch made", "allow"],
      ["touch a && rm a", "deny"],
      ["mkdir b", "ask"],
    ] as const) {
      const reported = await runInProcess(place, [
        "permissions",
        "test",
        `Bash(${command})`,
        "--json",
        ...rules,
      ]);
      expect(JSON.parse(reported.out)).toMatchObject({ decision });
      const { result } = await print(place, [bash(command), "Done."], rules);
      expect(result.permission_denials).toHaveLength(decision === "allow" ? 0 : 1);
    }
    expect(existsSync(join(place.cwd, "made"))).toBe(true);
    expect(existsSync(join(place.cwd, "a"))).toBe(false);
  });

  test("permissions list shows the file of each rule, on stdout alone as JSON [PRM-8]", async () => {
    const place = createPlace();
    place.write(
      ".claude/settings.json",
      JSON.stringify({ permissions: { deny: ["Read(.env)"], allow: ["Bash"] } }),
    );
    const { code, out } = await runInProcess(place, ["permissions", "list", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      rules: [{ list: "deny", rule: "Read(.env)", from: ".claude/settings.json" }],
      heldBack: [{ key: "permissions.allow", detail: "Bash", reason: "folder-not-trusted" }],
    });
  });
});

describe("trust [PRM-11]", () => {
  test("stored with --yes makes a repository's rules count, and taken back it no longer does", async () => {
    const place = createPlace();
    place.write(
      ".claude/settings.json",
      JSON.stringify({ permissions: { allow: ["Bash(touch *)"] }, hooks: hook }),
    );
    const decision = async () =>
      JSON.parse((await runInProcess(place, ["permissions", "test", "Bash(touch x)", "--json"])).out)
        .decision;
    expect(await decision()).toBe("ask");
    expect((await runInProcess(place, ["trust"])).code).toBe(2);
    expect((await runInProcess(place, ["trust", "--yes"])).code).toBe(0);
    expect(await decision()).toBe("allow");
    expect((await runInProcess(place, ["trust", "--remove"])).code).toBe(0);
    expect(await decision()).toBe("ask");
  });

  test.skipIf(!hasTerminal)("is asked for in a terminal after everything was shown", async () => {
    const place = createPlace();
    place.write(".claude/settings.json", JSON.stringify({ hooks: hook }));
    const program = `"${process.execPath}" "${join(projectRoot, "bin/retinue.js")}" trust`;
    const env = { HOME: place.home, PATH: process.env["PATH"], TERM: "xterm" };
    const child = spawn("script", ["-qec", program, "/dev/null"], { cwd: place.cwd, env });
    onTestFinished(() => void child.kill("SIGKILL"));
    let screen = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const before = screen;
      screen += text;
      if (!before.includes("[y/N]") && screen.includes("[y/N]")) child.stdin.write("y\r");
    });
    const status = await new Promise((resolve) => child.on("close", resolve));
    expect(screen.indexOf("hooks.Stop: touch ran")).toBeGreaterThan(-1);
    expect(screen.indexOf("hooks.Stop: touch ran")).toBeLessThan(screen.indexOf("[y/N]"));
    expect(status).toBe(0);
    expect(stateOf(place).projects[place.cwd]).toEqual({ hasTrustDialogAccepted: true });
    expect(existsSync(join(place.cwd, "ran"))).toBe(false);
  });
});

describe("the sandbox", () => {
  const settings = JSON.stringify({ sandbox: { enabled: true } });

  test("keeps an allowed command from writing outside where the doctor finds it well, and refuses it elsewhere [CLI-5]", async () => {
    const place = createPlace();
    // A process has one sandbox, which this one may use for something else.
    const { code, out } = await runCommand(place, ["doctor", "--json", "--settings", settings]);
    const checks: { name: string; state: string; text: string }[] = JSON.parse(out).checks;
    const found = checks.find(({ name }) => name === "sandbox");
    const outside = join(place.home, "made");
    const steps = [bash(`touch ${outside}; touch inside`), "Done."];
    const { answer } = await print(
      place,
      steps,
      ["--allowedTools", "Bash", "--settings", settings],
      runCommand,
    );
    if (found?.state === "ok") expect(answer).toMatch(/Read-only file system|Operation not permitted/);
    else {
      expect({ code, text: found?.text }).toEqual({
        code: 1,
        text: expect.stringContaining("No command can run"),
      });
      expect(answer).toContain("require a sandbox for commands, and there is none");
    }
    expect(existsSync(outside)).toBe(false);
    expect(existsSync(join(place.cwd, "inside"))).toBe(found?.state === "ok");
  });
});
