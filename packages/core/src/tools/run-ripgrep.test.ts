import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type RipgrepRequest, runRipgrep } from "./run-ripgrep.ts";

let space: Workspace;
beforeEach(async () => {
  space = await createWorkspace();
});
afterEach(() => space[Symbol.asyncDispose]());

const generous = 60_000;
const request = (changes: Partial<RipgrepRequest>): RipgrepRequest => ({
  arguments: ["x", space.project],
  directory: space.project,
  signal: new AbortController().signal,
  timeLimitMs: generous,
  take: () => "more",
  ...changes,
});

/** A search that says the process it is and then never ends, with a child that does not either. */
async function endless(): Promise<string> {
  const path = await space.write("../endless.sh", '#!/bin/sh\nsleep 120 &\necho "$$ $!"\nwait\n');
  await chmod(path, 0o755);
  return path;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("running ripgrep", () => {
  test("gives its output and how it ended", async () => {
    await space.write("a.txt", "x\n");
    let output = "";
    const ending = await runRipgrep(
      request({
        take(text) {
          output += text;
          return "more";
        },
      }),
    );
    expect(ending).toEqual({ type: "finished", code: 0, errors: "" });
    expect(output).toBe(`${space.path("a.txt")}:x\n`);
    expect(await runRipgrep(request({ arguments: ["absent", space.project] }))).toMatchObject({ code: 1 });
  });

  test("takes no options from a configuration file, and shows what it complains about", async () => {
    const program = await space.write("../show.sh", '#!/bin/sh\necho "$1" "$2" >&2\nexit 2\n');
    await chmod(program, 0o755);
    expect(await runRipgrep(request({ program }))).toEqual({
      type: "finished",
      code: 2,
      errors: "--no-config x\n",
    });
  });

  test("does not part characters that come in two pieces", async () => {
    await space.write("a.txt", `${"😀".repeat(300_000)}x`);
    let output = "";
    await runRipgrep(
      request({
        take(text) {
          output += text;
          return "more";
        },
      }),
    );
    expect(output).not.toContain("\ufffd");
    expect(output.length).toBeGreaterThan(600_000);
  });

  test("ends with everything it started when the run is stopped in the middle", async () => {
    const controller = new AbortController();
    let pids: number[] = [];
    const running = runRipgrep(
      request({
        program: await endless(),
        signal: controller.signal,
        take(text) {
          pids = text.trim().split(" ").map(Number);
          controller.abort(new Error("stopped"));
          return "more";
        },
      }),
    );
    await expect(running).rejects.toThrow("stopped");
    expect(pids).toHaveLength(2);
    await expect.poll(() => pids.filter(isAlive), { timeout: generous }).toEqual([]);
  });

  test("ends the search when there is enough", async () => {
    let pids: number[] = [];
    const ending = await runRipgrep(
      request({
        program: await endless(),
        take(text) {
          pids = text.trim().split(" ").map(Number);
          return "enough";
        },
      }),
    );
    expect(ending.type).toBe("enough");
    await expect.poll(() => pids.filter(isAlive), { timeout: generous }).toEqual([]);
  });

  test("ends the search when its time is over", async () => {
    expect(await runRipgrep(request({ program: await endless(), timeLimitMs: 5 }))).toMatchObject({
      type: "time",
    });
  });

  test.skipIf(process.platform !== "linux")(
    "an ignore file of the repository that leads to something endless does not take the memory [PRM-11]",
    async () => {
      symlinkSync("/dev/zero", space.path(".ignore"));
      const ending = await runRipgrep(request({ maxMemory: 50_000_000 }));
      expect(ending).toMatchObject({ type: "killed", errors: expect.stringContaining("/dev/zero") });
    },
  );

  test("one that is killed has not found nothing: it broke off", async () => {
    const program = await space.write("killed.sh", "#!/bin/sh\nkill -KILL $$\n");
    await chmod(program, 0o755);
    expect(await runRipgrep(request({ program }))).toEqual({
      type: "killed",
      errors: "The search was cut short: ripgrep was killed by SIGKILL. Narrow it, or try again.",
    });
  });

  test("explains a program that cannot be started", async () => {
    expect(await runRipgrep(request({ program: `${space.root}/absent` }))).toMatchObject({
      type: "unavailable",
      errors: expect.stringContaining("could not be started"),
    });
  });

  test.skipIf(process.platform === "win32")(
    "a folder that was judged is not searched where a link is in its place or above it [PRM-10]",
    async () => {
      const { root } = space;
      mkdirSync(join(root, "outside/src"), { recursive: true });
      writeFileSync(join(root, "outside/src/key.txt"), "needle");
      symlinkSync(join(root, "outside"), join(root, "swapped"));
      for (const directory of [join(root, "swapped"), join(root, "swapped/src"), join(root, "gone")]) {
        let text = "";
        const take = (more: string) => {
          text += more;
          return "more" as const;
        };
        const ending = await runRipgrep(
          request({ directory, isJudged: true, arguments: ["needle", "./"], take }),
        );
        expect([ending.type, text]).toEqual(["unavailable", ""]);
      }
      let found = "";
      const program = join(root, "swap.sh");
      // Swapping the folder after it was opened does not lead the search elsewhere.
      const swap = `mv ${root}/real ${root}/moved; ln -s ${root}/outside/src ${root}/real; ls .`;
      writeFileSync(program, `#!/bin/sh\n${swap}\n`, { mode: 0o755 });
      mkdirSync(join(root, "real"));
      writeFileSync(join(root, "real/own.txt"), "");
      const take = (more: string) => {
        found += more;
        return "more" as const;
      };
      await runRipgrep(request({ directory: join(root, "real"), isJudged: true, program, take }));
      expect(found).toBe("own.txt\n");
    },
  );
});
