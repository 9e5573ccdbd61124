import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openAppendLog } from "./append-log.ts";
import { readLines } from "./read-lines.ts";

let root: string;
let file: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "log-"));
  file = join(root, "project", "a.jsonl");
});
afterEach(() => rm(root, { recursive: true, force: true }));

const text = () => readFile(file, "utf8");
const put = async (content: string | Buffer) => {
  await mkdir(join(root, "project"), { recursive: true });
  await writeFile(file, content);
};
const logModule = JSON.stringify(new URL("./append-log.ts", import.meta.url).href);
const script = (body: string) => [
  "--input-type=module",
  "-e",
  `const { openAppendLog } = await import(${logModule}); const file = ${JSON.stringify(file)};\n${body}`,
];

describe("[TRN-2] lines are in the file when append returns", () => {
  it("whole lines are added, and the length is reported in bytes", async () => {
    using log = openAppendLog(file);
    expect(log.append(["é", "b"])).toBe(5);
    expect(await text()).toBe("é\nb\n");
    expect(log.append([])).toBe(5);
    log.append(["c"]);
    expect(log.length).toBe(7);
    expect(await text()).toBe("é\nb\nc\n");
  });

  it.skipIf(process.platform === "win32")("only this user can read the file and its folder", async () => {
    using log = openAppendLog(file);
    log.append(["a"]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(root, "project"))).mode & 0o777).toBe(0o700);
  });

  it("a line with a line break in it is refused before anything is written", async () => {
    using log = openAppendLog(file);
    expect(() => log.append(["a", "b\nc"])).toThrow(expect.objectContaining({ code: "line-break-in-line" }));
    expect(await text()).toBe("");
  });

  it("a closed log takes nothing, and can be closed again", () => {
    const log = openAppendLog(file);
    log.close();
    log.close();
    expect(() => log.append(["a"])).toThrow(expect.objectContaining({ code: "log-closed" }));
    openAppendLog(file).close();
  });
});

describe("[TRN-2] a torn last line is survived", () => {
  it("the torn line is ended on opening and reported, and the next line stays whole", async () => {
    await put('{"a":1}\n{"a":');
    using log = openAppendLog(file);
    expect(log.repaired).toBe(true);
    log.append(['{"a":2}']);
    expect(await text()).toBe('{"a":1}\n{"a":\n{"a":2}\n');
    expect(log.length).toBe(Buffer.byteLength(await text()));
    expect(await readLines(file)).toMatchObject({ values: [{ a: 1 }, { a: 2 }], broken: 1, torn: false });
  });

  it("a file that ends well is left as it is", async () => {
    await put('{"a":1}\n');
    using log = openAppendLog(file);
    expect(log.repaired).toBe(false);
    expect(await text()).toBe('{"a":1}\n');
  });

  it("what a program without the lock adds meanwhile is kept, and its torn line does not swallow ours", async () => {
    using log = openAppendLog(file);
    log.append(["a"]);
    await appendFile(file, "title\n");
    log.append(["b"]);
    await appendFile(file, "torn");
    log.append(["c"]);
    expect(await text()).toBe("a\ntitle\nb\ntorn\nc\n");
  });
});

describe("a file that is not as expected is refused", () => {
  it("[TRN-2] a file that grew after it was read", async () => {
    await put('{"a":1}\n');
    const { length } = await readLines(file);
    await appendFile(file, '{"a":2}\n');
    expect(() => openAppendLog(file, { expectLength: length })).toThrow(
      expect.objectContaining({ code: "file-changed", message: expect.stringContaining("16 bytes, not 8") }),
    );
    openAppendLog(file, { expectLength: 16 }).close();
  });

  it("a file that was removed while it was written", async () => {
    using log = openAppendLog(file);
    await rm(file);
    expect(() => log.append(["a"])).toThrow(expect.objectContaining({ code: "file-removed" }));
  });

  it("a folder in its place, or a file in place of its folder", async () => {
    await mkdir(file, { recursive: true });
    expect(() => openAppendLog(file)).toThrow(expect.objectContaining({ code: "not-a-file" }));
    const below = join(root, "plain", "a.jsonl");
    await writeFile(join(root, "plain"), "");
    expect(() => openAppendLog(below)).toThrow(expect.objectContaining({ code: "not-a-file" }));
  });
});

describe("[TRN-2] two processes never write one file", () => {
  it("the second is refused and reported which process has it", async () => {
    const child = spawn(
      process.execPath,
      script(`openAppendLog(file); console.log("open"); process.stdin.resume();`),
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    await once(child.stdout, "data");
    expect(() => openAppendLog(file)).toThrow(
      expect.objectContaining({
        code: "file-in-use",
        message: expect.stringContaining(`process ${child.pid}`),
      }),
    );
    child.stdin.end();
    await once(child, "exit");
    openAppendLog(file).close();
  });

  it("of two that open at the same time and write in a hurry, only one has lines in the file", async () => {
    const body = (name: string) => `
      try {
        const log = openAppendLog(file);
        for (let i = 0; i < 200; i += 1) log.append([JSON.stringify({ by: "${name}", pad: "x".repeat(500) })]);
        console.log("wrote"); process.stdin.resume();
      } catch (error) { console.log(error.code); }`;
    const children = ["one", "two"].map((name) =>
      spawn(process.execPath, script(body(name)), { stdio: ["pipe", "pipe", "inherit"] }),
    );
    const said = await Promise.all(
      children.map(async ({ stdout }) => String((await once(stdout, "data"))[0]).trim()),
    );
    for (const child of children) child.stdin.end();
    await Promise.all(children.map((child) => child.exitCode ?? once(child, "exit")));
    expect(said.sort()).toEqual(["file-in-use", "wrote"]);
    const { values, broken, torn } = await readLines(file);
    expect({ lines: values.length, writers: new Set(values.map(({ by }) => by)).size, broken, torn }).toEqual(
      {
        lines: 200,
        writers: 1,
        broken: 0,
        torn: false,
      },
    );
  });
});

it.skipIf(process.platform === "win32")(
  "[TRN-2] a write that fails half way is taken back, and the log can be used on",
  async () => {
    const body = `
      const log = openAppendLog(file);
      log.append(["short"]);
      try { log.append(["x".repeat(100_000)]); } catch (error) { console.log(error.code, log.length); }
      log.append(["after"]);`;
    const limited = ["-c", 'ulimit -f 16; exec "$@"', "sh", process.execPath, ...script(body)];
    const { stdout } = await promisify(execFile)("sh", limited);
    expect(stdout.trim()).toBe("file-too-large 6");
    expect(await text()).toBe("short\nafter\n");
  },
);

describe("what is synced [TRN-2]", () => {
  it("with the durability `sync` the lines are brought to the disk, with `os` that is left to the system", async () => {
    const syncs: string[] = [];
    const dataSync = (name: string) => async () => void syncs.push(name);
    using strict = openAppendLog(file, { durability: "sync", dataSync: dataSync("sync") });
    using loose = openAppendLog(`${file}.other`, { durability: "os", dataSync: dataSync("os") });
    for (const log of [strict, loose]) {
      log.append(["a"]);
      await log.sync();
    }
    expect(syncs).toEqual(["sync"]);
  });

  it("a disk that did not take the lines is written to no more", async () => {
    const dataSync = async () => {
      throw Object.assign(new Error("i/o error"), { code: "EIO" });
    };
    using log = openAppendLog(file, { durability: "sync", dataSync });
    log.append(["a"]);
    await expect(log.sync()).rejects.toThrow("i/o error");
    expect(() => log.append(["b"])).toThrow("i/o error");
  });

  it("a new file, its folder and those above it are brought to the disk for real", async () => {
    using log = openAppendLog(join(root, "new", "deep", "b.jsonl"), { durability: "sync" });
    log.append(["a"]);
    await log.sync();
    expect(log.length).toBe(2);
  });
});
