import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { followedVersion } from "@retinue/hosts/agent-sdk/init-message.ts";
import { expect, onTestFinished, test } from "vitest";
import { projectRoot } from "../project-files.ts";

const script = join(projectRoot, "bin/retinue.js");

function createFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "retinue-launcher-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** As if the Node that starts the command were an old one. */
const asOld =
  'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})';

async function launch(
  path: string,
  words: readonly string[],
  { isOld = false, cwd = tmpdir(), environment = {}, signal }: LaunchOptions = {},
) {
  const flags = isOld ? ["--import", asOld] : [];
  const child = spawn(process.execPath, [...flags, path, ...words], {
    cwd,
    env: { HOME: "/nonexistent", PATH: "/nonexistent", ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  if (signal !== undefined) child.stdout.once("data", () => child.kill(signal));
  child.stdin.end();
  const [out, err, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise((resolve) => child.on("close", (number, name) => resolve(number ?? name))),
  ]);
  return { out, err, code };
}

interface LaunchOptions {
  readonly isOld?: boolean;
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: NodeJS.Signals;
}

/** A copy without anything around it, so that nothing is found but what a test lays out. */
function copyAlone(main: string): string {
  const folder = createFolder();
  mkdirSync(join(folder, "bin"));
  for (const name of ["retinue.js", "find-node.js"])
    writeFileSync(join(folder, "bin", name), readFileSync(join(projectRoot, "bin", name)));
  writeFileSync(join(folder, "package.json"), readFileSync(join(projectRoot, "package.json")));
  mkdirSync(join(folder, "dist/cli"), { recursive: true });
  writeFileSync(join(folder, "dist/cli/main.js"), main);
  return join(folder, "bin/retinue.js");
}

const echo = "export const main = async (words) => (console.log(JSON.stringify(words)), 7);";

function installNode(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(process.execPath, path);
}

test("the version is plain, and under the name `claude` one that others can read [DRP-1]", async () => {
  const { version, followedVersion: written } = JSON.parse(
    readFileSync(join(projectRoot, "package.json"), "utf8"),
  );
  expect(written).toBe(followedVersion);
  expect((await launch(script, ["--version"])).out).toBe(`${version}\n`);
  const link = join(createFolder(), "claude");
  symlinkSync(script, link);
  expect((await launch(link, ["--version"])).out).toBe(`${followedVersion} (retinue ${version})\n`);
  expect((await launch(link, ["-v"])).out).toMatch(/^\d+\.\d+\.\d+ \(/);
});

test.each([
  [".nvm/versions/node/v24.1.0/bin/node"],
  [".volta/tools/image/node/22.18.0/bin/node"],
  [".local/share/fnm/node-versions/v23.0.0/installation/bin/node"],
  [".asdf/installs/nodejs/24.0.0/bin/node"],
])("started by an old Node, the command runs on a newer one in ~/%s [CLI-1]", async (path) => {
  const home = createFolder();
  installNode(join(home, path));
  const { out, code } = await launch(copyAlone(echo), ["-p", "a b", ""], {
    isOld: true,
    environment: { HOME: home },
  });
  expect([code, JSON.parse(out)]).toEqual([7, ["-p", "a b", ""]]);
});

test("an old Node finds none in the working folder, and says what to do [CLI-1]", async () => {
  const folder = createFolder();
  const ran = join(folder, "ran");
  const planted = join(folder, "bin/node");
  mkdirSync(dirname(planted));
  writeFileSync(planted, `#!/bin/sh\ntouch ${ran}\nexec ${process.execPath} "$@"\n`);
  chmodSync(planted, 0o755);
  const old = join(createFolder(), "node");
  writeFileSync(old, '#!/bin/sh\necho "v20.0.0 /bin/sh"\n');
  chmodSync(old, 0o755);
  const { err, code } = await launch(copyAlone(echo), ["-p"], {
    isOld: true,
    cwd: folder,
    environment: { PATH: `${dirname(planted)}:bin:.:${dirname(old)}` },
  });
  if (code === 1) expect(err).toContain("retinue needs Node 22.18 or newer");
  expect(() => readFileSync(ran)).toThrow();
});

test("signals reach the command on the other Node, and its end is the end [CLI-1]", async () => {
  const home = createFolder();
  installNode(join(home, ".nvm/versions/node/v24.1.0/bin/node"));
  const main = `export const main = () => new Promise((resolve) => {
    process.on("SIGTERM", () => resolve(143));
    setInterval(() => {}, 1000);
    console.log("ready");
  }).then((code) => process.exit(code));`;
  const { code } = await launch(copyAlone(main), [], {
    isOld: true,
    environment: { HOME: home },
    signal: "SIGTERM",
  });
  expect(code).toBe(143);
});

test.each([
  "-p",
  "--help",
])("a checkout that is not built says how to build it, in one line: %s", async (word) => {
  const folder = createFolder();
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "bin/retinue.js"), readFileSync(script));
  const { out, err, code } = await launch(join(folder, "bin/retinue.js"), [word]);
  expect({ out, err, code }).toEqual({
    out: "",
    err: "retinue is not built in this folder; `npm run build` does it.\n",
    code: 1,
  });
});
