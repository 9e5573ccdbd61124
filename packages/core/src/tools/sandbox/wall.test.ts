import { execFileSync, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { existsSync, openSync } from "node:fs";
import {
  link,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawn as spawnTerminal } from "@lydell/node-pty";
import { type RunRequest, runProcess } from "@retinue/base/foundation/start-process.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findSystemProgram } from "../command/find-system-program.ts";
import type { Invocation } from "./sandbox.ts";
import {
  createWall,
  type WallKind,
  type WallPlaces,
  type WallStart,
  wallFailure,
  wallKinds,
} from "./wall.ts";
import { wallRules } from "./wall-rules.ts";

const canary = "canary-2f8a41";
const starts = new Map<WallKind, WallStart>();
for (const kind of wallKinds) starts.set(kind, await createWall({ kinds: [kind] }).start());
const perl = await findSystemProgram("perl");

let root: string;
let work: string;
let home: string;
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "wall-")));
  [work, home] = [join(root, "work"), join(root, "home")];
  await mkdir(join(work, "sub"), { recursive: true });
  await mkdir(join(work, "secrets"));
  await mkdir(join(home, ".ssh"), { recursive: true });
  await mkdir(join(root, "outside"));
  await writeFile(join(work, "a.txt"), "a text\n");
  for (const file of [
    join(work, ".env"),
    join(work, "sub", ".env"),
    join(work, "secrets", "key"),
    join(home, ".ssh", "id"),
    join(root, "outside", "file"),
  ])
    await writeFile(file, `${canary}\n`);
  await link(join(work, ".env"), join(work, "other-name"));
  await link(join(work, "secrets", "key"), join(work, "sub", "key-name"));
  await symlink(".env", join(work, "to-env"));
  await symlink("../outside/file", join(work, "to-outside"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

function denied(...texts: readonly string[]) {
  const deny = texts.map((text) => {
    const reading = parseRule(text, { list: "deny" });
    if (reading.type === "invalid") throw new Error(reading.reason);
    return { rule: reading.rule, anchor: work };
  });
  return wallRules({ allow: [], ask: [], deny, workingDirectories: [work], home });
}

function placesHere(): WallPlaces {
  return {
    directory: work,
    workingDirectories: [work],
    home,
    path: process.env["PATH"],
    rules: denied("Read(**/.env)", "Read(./secrets/**)"),
  };
}

interface Attempt {
  readonly places?: Partial<WallPlaces>;
  readonly more?: Partial<RunRequest>;
}

async function wrapped(
  kind: WallKind,
  invocation: Invocation,
  places: Partial<WallPlaces> = {},
): Promise<Invocation> {
  const start = starts.get(kind);
  if (start?.type !== "ready") throw new Error(start?.why);
  return start.wrap(invocation, { ...placesHere(), ...places });
}

async function run(kind: WallKind, command: string, { places = {}, more = {} }: Attempt = {}) {
  const invocation = await wrapped(kind, { file: "/bin/bash", arguments: ["--norc", "-c", command] }, places);
  return runProcess({
    ...invocation,
    directory: places.directory ?? work,
    environment: { PATH: process.env["PATH"] ?? "", HOME: home, NODE: process.execPath },
    reportsBack: true,
    signal: new AbortController().signal,
    timeLimitMs: 60_000,
    ...more,
  });
}

/** What is in the folders of the test, by path, size and moment of change. */
function listing(): string {
  return execFileSync("find", [root, "-printf", "%p %s %T@ %m %U %l\n"], { encoding: "utf8" });
}

describe("where there is no wall", () => {
  it.each([
    [
      "there is no helper and no bwrap",
      { platform: "linux", helper: () => undefined, find: async (): Promise<undefined> => undefined },
      "bwrap is not installed",
    ],
    [
      "neither works",
      { platform: "linux", helper: () => "/bin/false", find: async (): Promise<string> => "/bin/false" },
      "does not work here",
    ],
    ["the system has no such thing", { platform: "darwin" }, "there is none for darwin"],
  ])("because %s, it says so [PRM-9]", async (_, options, words) => {
    const found = await createWall(options).start();
    expect(found).toMatchObject({ type: "unavailable", why: expect.stringContaining(words) });
  });

  it("distinguishes a wall that could not be set up from a program that ended with the same code [PRM-9]", () => {
    expect(wallFailure(125, "retinue-wall: no namespaces\n")).toBe("no namespaces");
    expect(wallFailure(125, "something else\n")).toBeUndefined();
    expect(wallFailure(0, "retinue-wall: no namespaces\n")).toBeUndefined();
  });
});

describe.each(wallKinds)("behind the wall of %s", (kind) => {
  const start = starts.get(kind);
  const skipped = start?.type === "ready" ? "" : ` (skipped: ${start?.why})`;
  const hasNamespaces = kind !== "landlock";
  const hidesProcesses = kind === "namespaces" || kind === "bubblewrap";
  const isOurs = kind !== "bubblewrap";

  describe.skipIf(start?.type !== "ready")(`a command${skipped}`, () => {
    it("reads as ever, with its own exit code and report [PRM-9]", async () => {
      const result = await run(
        kind,
        "cat a.txt; pwd >&3; cat <<< here; cat <(echo there); echo x > /dev/null; exit 7",
      );
      expect(result).toMatchObject({ stdout: "a text\nhere\nthere\n", exitCode: 7, report: `${work}\n` });
      const merged = { directory: root, name: "pipe" };
      const { stdout } = await run(kind, "echo one > /dev/stderr; echo two > /dev/stdout", {
        more: { merged },
      });
      expect(stdout).toBe("one\ntwo\n");
    });

    it.each([0, 1, 42, 255])("keeps the exit code %i [PRM-9]", async (code) => {
      expect((await run(kind, `exit ${code}`)).exitCode).toBe(code);
    });

    it.each([
      "SIGTERM",
      "SIGKILL",
      "SIGSEGV",
    ] as const)("keeps the signal %s that ended it [PRM-9]", async (signal) => {
      const { signal: seen, exitCode } = await run(kind, `kill -${signal.slice(3)} $$`);
      // bubblewrap reports a signal as a shell does.
      if (isOurs) expect(seen).toBe(signal);
      else expect(exitCode).toBeGreaterThan(128);
    });

    it("reads its input to the end and works without any [PRM-9]", async () => {
      expect((await run(kind, "cat; echo end", { more: { input: "one\ntwo\n" } })).stdout).toBe(
        "one\ntwo\nend\n",
      );
      expect((await run(kind, "cat; echo end")).stdout).toBe("end\n");
    });

    it("takes thousands of variables and arguments [PRM-9]", async () => {
      const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`V${at}`, "x".repeat(200)]));
      const result = await run(kind, 'echo "$V2999" | wc -c; echo "$TMPDIR"', {
        more: { environment: { ...many, PATH: "/usr/bin:/bin" } },
      });
      expect(result.stdout).toMatch(/^201\n\/\S+\n$/);
    });

    it("works with few descriptors [PRM-9]", async () => {
      const invocation = await wrapped(kind, { file: "/bin/bash", arguments: ["-c", "cat a.txt"] });
      if (invocation.sideInput !== undefined) return;
      const said = execFileSync("/bin/bash", [
        "-c",
        'ulimit -n 24; exec "$@"',
        "bash",
        invocation.file,
        ...invocation.arguments,
      ]);
      expect(said.toString()).toBe("a text\n");
    });

    it("sees the state of git, which is not refreshed by it [PRM-9]", async () => {
      const repository = await mkdtemp(join(root, "repository-"));
      await writeFile(join(repository, "a.txt"), "a text\n");
      const git = (...words: string[]) =>
        execFileSync("git", words, { cwd: repository, env: { ...process.env, HOME: home } });
      git("init", "-q");
      git("add", ".");
      git("-c", "user.name=a", "-c", "user.email=a@a", "commit", "-qm", "first");
      const tree = join(root, "tree");
      git("worktree", "add", "-q", tree);
      await writeFile(join(repository, "a.txt"), "a text\n");
      const before = await readFile(join(repository, ".git/index"));
      for (const directory of [repository, tree]) {
        const places = { directory, workingDirectories: [directory] };
        const { output, exitCode } = await run(kind, "git status --short; git log --format=%s", { places });
        expect({ output, exitCode }).toEqual({ output: "first\n", exitCode: 0 });
      }
      expect((await readFile(join(repository, ".git/index"))).equals(before)).toBe(true);
      await rm(repository, { recursive: true });
      await rm(tree, { recursive: true });
    });

    it.each([
      ["its name", "cat .env"],
      ["its name in another folder", "cat sub/.env"],
      ["another name of the same file", "cat other-name"],
      ["a link", "cat to-env"],
      ["a folder that is denied", "cat secrets/key; ls secrets/*"],
      ["another name of a file in a folder that is denied", "cat sub/key-name"],
      ["the root of the process", "cat /proc/self/root$PWD/.env"],
      ["the folder of the process", "cat /proc/self/cwd/.env"],
      ["the root of the first process", "cat /proc/1/root$PWD/.env"],
      ["the root of a thread", "cat /proc/thread-self/root$PWD/.env"],
      ["a descriptor", "exec 9< .env; cat <&9; cat /proc/self/fd/9"],
      ["a way around", "cd /; cat usr/../$OLDPWD/./sub/../.env"],
      ["a search", "grep -r . . 2>/dev/null"],
      ["an archive", "tar cf - . 2>/dev/null"],
      ["a copy", 'cp .env "$TMPDIR/copy"; cat "$TMPDIR/copy"'],
      ["a new name", 'ln .env "$TMPDIR/name"; cat "$TMPDIR/name"'],
      ["Node", `"$NODE" -e 'process.stdout.write(require("fs").readFileSync(".env"))'`],
      ["a link out of the work", "cat to-outside"],
      ["a folder beside the work", "cat ../outside/file; ls ../outside"],
      ["a key in the home", "cat ~/.ssh/id; ls ~/.ssh; cat ../home/.ssh/id"],
      ["a mount", "mount --bind .env a.txt; umount .env; umount -l .env; cat .env a.txt"],
      ["namespaces of its own", "unshare -Urm sh -c 'umount .env; cat .env'; unshare -m cat .env"],
      ["another root", "chroot / cat $PWD/.env"],
    ])("does not read what is denied by %s [PRM-9]", async (_, command) => {
      const { output } = await run(kind, `${command}; echo tried`);
      expect(output).not.toContain(canary);
      expect(output).toContain("tried");
    });

    it("does not read what its caller has open [PRM-9]", async () => {
      const invocation = await wrapped(kind, {
        file: "/bin/bash",
        arguments: ["-c", "cat <&5; cat /proc/self/fd/5; ls /proc/self/fd"],
      });
      if (invocation.sideInput !== undefined) return;
      const secret = openSync(join(root, "outside", "file"), "r");
      const child = spawn(invocation.file, invocation.arguments, {
        stdio: ["ignore", "pipe", "ignore", "ignore", "ignore", secret],
      });
      const said: Buffer[] = [];
      child.stdout?.on("data", (chunk: Buffer) => said.push(chunk));
      await new Promise((done) => child.once("close", done));
      expect(Buffer.concat(said).toString()).not.toContain(canary);
    });

    it("does not see the keys of its caller [PRM-9]", async () => {
      const { output } = await run(
        kind,
        `cat /proc/${process.pid}/environ /proc/$PPID/environ /proc/1/environ; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; echo tried`,
        { more: { environment: { PATH: "/usr/bin:/bin", HOME: home } } },
      );
      expect(output).not.toContain("VITEST");
      expect(output).toContain("tried");
    });

    it.each([
      ["a new file", "echo x > made; touch made; mkdir made; mkfifo made; mknod made p"],
      ["more in a file", "echo more >> a.txt; echo x | tee -a a.txt; dd if=/dev/zero of=a.txt count=1"],
      ["a file open for both", "exec 9<> a.txt && echo x >&9"],
      ["a shorter file", "truncate -s 0 a.txt; : > a.txt"],
      ["no file", "rm -f a.txt; mv a.txt b.txt; unlink a.txt; rm -rf sub"],
      ["other rights", "chmod 777 a.txt; chown 12345 a.txt; chgrp 12345 a.txt"],
      ["another moment", "touch -d 2001-01-01 a.txt"],
      ["another name", "ln a.txt b.txt; ln -s a.txt b.txt"],
      ["its own descriptor", "echo x > /proc/self/fd/0; echo x > /proc/self/cwd/made"],
      ["git", "git init -q; git config --global a.b c"],
      ["the home", "echo x > ~/made; mkdir -p ~/.config/made; echo x > ../home/.ssh/authorized_keys"],
      ["a folder beside", "echo x > ../outside/made; echo x > ../made"],
      ["a remount", "mount -o remount,rw /; mount -o remount,rw $PWD; echo x > made"],
      ["a program in a namespace", "unshare -Urm sh -c 'mount -o remount,rw /; echo x > made'"],
      ["attributes", "setfattr -n user.x -v y a.txt; chattr +a a.txt"],
      [
        "temporary files",
        "echo x > /tmp/made-behind-the-wall; echo x > /var/tmp/made-behind-the-wall; echo x > /dev/shm/made-behind-the-wall",
      ],
    ])("changes nothing: %s [PRM-9]", async (_, command) => {
      const before = listing();
      const { output } = await run(kind, `${command}; echo tried`);
      expect(output).toContain("tried");
      expect(listing()).toBe(before);
      for (const folder of ["/tmp", "/var/tmp", "/dev/shm"])
        expect(existsSync(join(folder, "made-behind-the-wall"))).toBe(false);
    });

    it("has a place for temporary files, which no other process sees [PRM-9]", async () => {
      const { stdout } = await run(
        kind,
        'echo ok > "$TMPDIR/x" && cat "$TMPDIR/x"; t=$(mktemp) && echo made',
      );
      expect(stdout).toBe("ok\nmade\n");
    });

    it("does not change the settings of the system [PRM-9]", async () => {
      const before = await readFile("/proc/sys/vm/swappiness", "utf8");
      await run(kind, `echo ${Number(before) + 1} > /proc/sys/vm/swappiness; echo x > /sys/kernel/made`);
      expect(await readFile("/proc/sys/vm/swappiness", "utf8")).toBe(before);
    });

    it.skipIf(!isOurs)("has no rights and gains none [PRM-9]", async () => {
      const { stdout } = await run(
        kind,
        "grep -E '^(CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'",
      );
      const most = process.getuid?.() === 0 ? "[04]" : "0";
      expect(stdout).toMatch(
        new RegExp(`^CapPrm:0{15}${most}\nCapEff:0{15}${most}\nCapAmb:0{16}\nNoNewPrivs:1\nSeccomp:2\n$`),
      );
    });

    it("reaches no port, no socket with a path and none with a name [PRM-9]", async () => {
      const path = join(work, "daemon.sock");
      const name = `\0wall-${process.pid}-${kind}`;
      const reached: unknown[] = [];
      const listen = (where: string | number) =>
        new Promise<ReturnType<typeof createServer>>((done) => {
          const server = createServer((one) => reached.push(one));
          server.listen(where === 0 ? { port: 0, host: "127.0.0.1" } : { path: String(where) }, () =>
            done(server),
          );
        });
      const servers = [await listen(path), await listen(name), await listen(0)];
      const datagrams = createSocket("udp4", () => reached.push("datagram"));
      await new Promise<void>((done) => datagrams.bind(0, "127.0.0.1", done));
      const address = servers[2]?.address();
      const port = typeof address === "object" ? (address?.port ?? 0) : 0;
      const script = `
        const net = require("net");
        const say = (what) => (error) => console.log(what, error ? error.code : "in");
        for (const where of [{ path: ${JSON.stringify(path)} }, { path: "\\0wall-${process.pid}-${kind}" }, { port: ${port}, host: "127.0.0.1" }])
          try { net.connect(where).on("connect", say("connect")).on("error", say("error")); } catch (error) { say("error")(error); }
        try { const u = require("dgram").createSocket("udp4"); u.on("error", () => u.close()); u.send("x", ${datagrams.address().port}, "127.0.0.1", () => u.close()); } catch {}
      `;
      const said = await run(kind, `"$NODE" -e '${script.replaceAll("'", "")}'`, {});
      for (const server of servers) await new Promise((done) => server.close(done));
      await new Promise<void>((done) => datagrams.close(done));
      await rm(path, { force: true });
      expect(said.output).not.toContain("connect");
      expect(reached).toEqual([]);
    });

    it("reaches no other process [PRM-9]", async () => {
      const other = spawn("/bin/sleep", ["600"], { env: { SECRET: canary }, stdio: "ignore" });
      const pid = String(other.pid);
      const { output } = await run(
        kind,
        `kill -9 ${pid}; kill -0 ${pid} || echo nobody; cat /proc/${pid}/environ /proc/${pid}/maps /proc/${pid}/mem; ls /proc/${pid}/root /proc/${pid}/cwd/ /proc/${pid}/fd/; echo x > /proc/${pid}/oom_score_adj; nsenter -t ${pid} -a true && echo entered; echo tried`,
      );
      expect(other.exitCode ?? other.signalCode).toBeNull();
      other.kill("SIGKILL");
      expect(output).toContain("nobody");
      expect(output).not.toContain(canary);
      expect(output).not.toContain("entered");
    });

    it.skipIf(!hidesProcesses)("sees no process but its own [PRM-9]", async () => {
      const { stdout } = await run(kind, "ls -d /proc/[0-9]*; echo /proc/$$");
      expect(stdout.split("\n").length).toBeLessThan(8);
      expect(stdout).not.toContain(`/proc/${process.pid}\n`);
    });

    it.skipIf(perl === undefined || !isOurs)(
      "is refused the system calls that lead out [PRM-9]",
      async () => {
        const numbers =
          process.arch === "x64"
            ? {
                ptrace: 101,
                process_vm_readv: 310,
                open_by_handle_at: 304,
                unshare: 272,
                setns: 308,
                keyctl: 250,
                bpf: 321,
                userfaultfd: 323,
                io_uring_setup: 425,
                clone3: 435,
                mount_setattr: 442,
                open_tree: 428,
                later: 470,
                secondSet: 0x40000000 + 41,
              }
            : {
                ptrace: 117,
                process_vm_readv: 270,
                open_by_handle_at: 265,
                unshare: 97,
                setns: 268,
                keyctl: 219,
                bpf: 280,
                userfaultfd: 282,
                io_uring_setup: 425,
                clone3: 435,
                mount_setattr: 442,
                open_tree: 428,
                later: 470,
              };
        const script = `for my $n (@ARGV) { my $r = syscall($n, 0, 0, 0, 0, 0); my $e = $! + 0; print "$n $e\\n" if $r != -1 || ($e != 1 && $e != 38); } print "tried\\n";`;
        const { output } = await run(kind, `perl -e '${script}' ${Object.values(numbers).join(" ")}`);
        expect(output).toBe("tried\n");
      },
    );

    it.skipIf(perl === undefined)("types nothing into the terminal it runs in [PRM-9]", async () => {
      const script =
        'my $x = "x"; ioctl(STDIN, 0x5412, $x) ? print "typed\\n" : print "refused\\n"; print -t STDIN ? "tty\\n" : "none\\n";';
      const invocation = await wrapped(kind, { file: perl ?? "", arguments: ["-e", script] });
      if (invocation.sideInput !== undefined) return;
      const terminal = spawnTerminal(invocation.file, [...invocation.arguments], {
        cwd: work,
        env: { PATH: "/usr/bin:/bin" },
      });
      let said = "";
      terminal.onData((text) => {
        said += text;
      });
      await new Promise((done) => terminal.onExit(done));
      expect(said).toContain("refused");
      expect(said).toContain("tty");
    });

    it("leaves nothing running, whatever it starts [PRM-9]", async () => {
      const mark = `61.${process.pid % 1000}${wallKinds.indexOf(kind)}`;
      await run(
        kind,
        `setsid sleep ${mark} & nohup sleep ${mark} >/dev/null 2>&1 & (sleep ${mark} &) ; echo begun`,
      );
      expect(sleepers(mark)).toEqual([]);
    });

    it("is ended at its time limit with all that it started [PRM-9]", async () => {
      const mark = `62.${process.pid % 1000}${wallKinds.indexOf(kind)}`;
      const { timedOut } = await run(kind, `setsid sleep ${mark} & trap '' TERM; sleep ${mark}`, {
        more: { timeLimitMs: 400, graceMs: 200 },
      });
      expect(timedOut).toBe(true);
      expect(sleepers(mark)).toEqual([]);
    });

    it("may end in its own way when it is asked to [PRM-9]", async () => {
      const controller = new AbortController();
      const running = run(kind, "trap 'echo bye; exit 3' TERM; echo begun; while :; do sleep 0.05; done", {
        more: { signal: controller.signal, graceMs: 20_000 },
      });
      await waitUntil(() => execFileSync("ps", ["-eo", "args"]).toString().includes("echo bye; exit 3"));
      controller.abort();
      const { stdout, aborted } = await running;
      expect(aborted).toBe(true);
      if (isOurs) expect(stdout).toMatch(/bye\n$|^$/);
    });

    it.skipIf(!hasNamespaces)("ends when what started it is killed [PRM-9]", async () => {
      const mark = `63.${process.pid % 1000}${wallKinds.indexOf(kind)}`;
      const invocation = await wrapped(kind, {
        file: "/bin/bash",
        arguments: ["-c", `setsid sleep ${mark} & sleep ${mark}`],
      });
      if (invocation.sideInput !== undefined) return;
      const child = spawn(invocation.file, invocation.arguments, { stdio: "ignore", cwd: work });
      await waitUntil(() => sleepers(mark).length === 2);
      child.kill("SIGKILL");
      await waitUntil(() => sleepers(mark).length === 0);
    });

    it.skipIf(!isOurs)(
      "does not start where its folder was swapped for a link meanwhile [PRM-9]",
      async () => {
        const folder = join(root, "swapped");
        await mkdir(folder);
        const places = { directory: folder, workingDirectories: [folder] };
        const invocation = await wrapped(
          kind,
          { file: "/bin/bash", arguments: ["-c", "echo ran; cat id"] },
          places,
        );
        await rename(folder, `${folder}-away`);
        await symlink(join(home, ".ssh"), folder);
        const { output, exitCode } = await runProcess({
          ...invocation,
          directory: "/",
          environment: {},
          signal: new AbortController().signal,
        });
        await rm(folder);
        await rm(`${folder}-away`, { recursive: true });
        expect(output).not.toContain(canary);
        expect(exitCode).not.toBe(0);
        expect(output).not.toContain("ran");
      },
    );

    it("hides a file whose folder was swapped for a link meanwhile, or does not run [PRM-9]", async () => {
      const invocation = await wrapped(kind, {
        file: "/bin/bash",
        arguments: ["-c", "cat moved/key secrets/key"],
      });
      await rename(join(work, "secrets"), join(work, "moved"));
      await symlink("moved", join(work, "secrets"));
      const { output } = await runProcess({
        ...invocation,
        directory: work,
        environment: {},
        signal: new AbortController().signal,
      });
      await rm(join(work, "secrets"));
      await rename(join(work, "moved"), join(work, "secrets"));
      if (kind !== "bubblewrap") expect(output).not.toContain(canary);
    });

    it.skipIf(!isOurs)("does not run where a part of the wall cannot be had [PRM-9]", async () => {
      const { file, arguments: words } = await wrapped(kind, { file: "/bin/echo", arguments: ["ran"] });
      const broken: readonly (readonly string[])[] = [
        ["--unknown", "x", ...words],
        ["--hide", "relative", ...words],
        ["--keep", "1", ...words],
        [...words.slice(0, words.indexOf("--")), "--chdir", "/nowhere-at-all", "--", "/bin/echo", "ran"],
        [...words.slice(0, words.indexOf("--")), "--", "echo", "ran"],
        words.slice(2),
        words.slice(0, words.indexOf("--")),
        [],
      ];
      for (const options of broken) {
        const { output, exitCode } = await runProcess({
          file,
          arguments: options,
          directory: work,
          environment: {},
          signal: new AbortController().signal,
        });
        expect(wallFailure(exitCode, output), options.join(" ")).toBeDefined();
        expect(output).not.toMatch(/^ran/m);
      }
    });

    it("shows what a rule lets be read, and a home that is the work without its keys [PRM-9]", async () => {
      const shown = { places: { rules: { show: [join(root, "outside")], hide: [] } } };
      expect((await run(kind, "cat ../outside/file", shown)).stdout).toContain(canary);
      await writeFile(join(home, "note"), "a note\n");
      const { output } = await run(kind, "cat note; cat .ssh/id", {
        places: { directory: home, workingDirectories: [home] },
      });
      await rm(join(home, "note"));
      expect(output).toContain("a note");
      expect(output).not.toContain(canary);
    });

    it.skipIf(!existsSync("/dev/shm"))(
      "finds its folder where that is among the devices [PRM-9]",
      async () => {
        const folder = await mkdtemp("/dev/shm/wall-");
        await writeFile(join(folder, "x"), "there\n");
        const { output } = await run(kind, "cat x; echo y > y", {
          places: { directory: folder, workingDirectories: [folder] },
        });
        expect(await stat(join(folder, "y")).catch(() => undefined)).toBeUndefined();
        await rm(folder, { recursive: true });
        expect(output).toMatch(/^there\n/);
      },
    );
  });
});

function sleepers(mark: string): readonly string[] {
  const lines = execFileSync("ps", ["-eo", "args"]).toString().split("\n");
  return lines.filter((line) => line.trim() === `sleep ${mark}`);
}

async function waitUntil(isSo: () => boolean): Promise<void> {
  const until = performance.now() + 30_000;
  while (!isSo()) {
    if (performance.now() > until) throw new Error("It did not come to be.");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
