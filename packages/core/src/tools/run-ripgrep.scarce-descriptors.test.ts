import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);

/** A program with few file descriptors, all but `free` of which it holds; the rest of it is what is tried. */
async function withFewDescriptors(free: number, body: string): Promise<string> {
  const program = `
    import { closeSync, openSync } from "node:fs";
    const { runProcess } = await import(${url("../../../base/src/foundation/start-process.ts")});
    const { runRipgrep } = await import(${url("./run-ripgrep.ts")});
    const { connectProcess } = await import(${url("../mcp/connect-process.ts")});
    await import("@vscode/ripgrep");
    const held = [];
    try { while (true) held.push(openSync("/dev/null", "r")); } catch {}
    const release = (count) => { for (const one of held.splice(0, count)) closeSync(one); };
    release(${free});
    const signal = new AbortController().signal;
    const run = () => runProcess({ file: "/bin/sh", arguments: ["-c", "echo hello"], directory: "/",
      environment: {}, input: "x", signal });
    ${body}
    console.log("alive");`;
  const child = spawn(
    "sh",
    ["-c", 'ulimit -n 60; exec "$@"', "sh", process.execPath, "--input-type=module", "-e", program],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return `${out}${err}`;
}

test
  .skipIf(process.platform === "win32")
  .concurrent(
    "without descriptors a command, a search and a server fail by themselves, and the program lives [MCP-2]",
    async () => {
      const said = await withFewDescriptors(
        1,
        `console.log("command:", (await run()).notStarted);
       const search = await runRipgrep({ arguments: ["x"], directory: "/", signal, timeLimitMs: 1000, take: () => "more" });
       console.log("search:", search.type, search.errors);
       const server = connectProcess({ file: "cat", arguments: [], directory: "/", environment: {}, graceMs: 100 });
       console.log("server:", await server.start().catch(({ message }) => message));`,
      );
      expect(said).toMatch(/command: .*EMFILE/);
      expect(said).toMatch(/search: unavailable .*EMFILE/);
      expect(said).toMatch(/server: .*EMFILE/);
      expect(said).toContain("alive");
    },
  );

test
  .skipIf(process.platform === "win32")
  .concurrent("a command that finds no descriptors is started when some are given back", async () => {
    const said = await withFewDescriptors(
      1,
      `const running = run();
       setTimeout(() => release(20), 60);
       console.log("command:", (await running).stdout);`,
    );
    expect(said).toContain("command: hello");
    expect(said).toContain("alive");
  });
