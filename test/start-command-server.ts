import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInProcess } from "./scenarios/run-command.ts";

/** `retinue` for lines of a shell, run in this process: a process of its own takes half a second for each. */
export interface CommandServer extends AsyncDisposable {
  /** The text of a program that hands its arguments, its folder and its environment over and prints what comes back. */
  readonly command: string;
}

export async function startCommandServer(): Promise<CommandServer> {
  const folder = mkdtempSync(join(tmpdir(), "retinue-commands-"));
  let calls = 0;
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    calls += 1;
    void answer(socket, join(folder, String(calls)));
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo; // Listening on a port, the address is never a pipe's name.
  return {
    command: `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/${port}
{ printf '%s\\0' "$PWD" "$#" "$@"; env -0; printf '\\0'; } >&3
read -r code file <&3
cat "$file.out"
cat "$file.err" >&2
exit "$code"
`,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What was written goes through files, since a shell cannot recognize where one of two texts ends. */
async function answer(socket: Socket, file: string): Promise<void> {
  const { cwd, words, environment } = await readRequest(socket);
  const { code, out, err } = await runInProcess({ cwd, home: environment["HOME"] ?? "" }, words, {
    environment,
  });
  writeFileSync(`${file}.out`, out);
  writeFileSync(`${file}.err`, err);
  socket.end(`${code} ${file}\n`);
}

interface Request {
  readonly cwd: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The folder, the number of words, the words and the environment, each ended by a zero byte, and an empty one at the end. */
function readRequest(socket: Socket): Promise<Request> {
  let received = "";
  return new Promise((resolve, reject) => {
    socket.setEncoding("utf8").on("data", (part) => {
      received += part;
      const [cwd = "", count = "", ...rest] = received.split("\0");
      const words = rest.slice(0, Number(count));
      const variables = rest.slice(Number(count));
      const end = variables.indexOf("");
      // The text behind the last zero byte is no field yet.
      if (!/^\d+$/.test(count) || end === -1 || end === variables.length - 1) return;
      const entries = variables.slice(0, end).map((line) => {
        const at = line.indexOf("=");
        return [line.slice(0, at), line.slice(at + 1)] as const;
      });
      resolve({ cwd, words, environment: Object.fromEntries(entries) });
    });
    socket.on("end", () => reject(new Error("The request ended too early.")));
  });
}
