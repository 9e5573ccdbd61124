/** How a command that starts another one reads its own arguments. */
export interface WrapperSpec {
  readonly options?: string;
  /** Operands before the inner command. */
  readonly before?: number;
  readonly writesBefore?: boolean;
  readonly assignments?: boolean;
  /** `-5` is an option too. */
  readonly numeric?: boolean;
  /** The rest is shell text. */
  readonly text?: boolean;
  /** `-c` after the operands brings shell text. */
  readonly textAfterC?: boolean;
  /** Options that bring shell text. */
  readonly textOptions?: string;
  /** Options that name the directory. */
  readonly directory?: string;
  /** Why it is never covered by a wildcard, even when the inner command is. */
  readonly reason?: string;
}

const starts = (name: string): string => `${name} starts the program it is given`;

export const wrapperSpecs: ReadonlyMap<string, WrapperSpec> = new Map<string, WrapperSpec>([
  [
    "env",
    {
      options:
        "i 0 v u: C: S:! ignore-environment null unset: chdir: split-string:! debug block-signal? default-signal? ignore-signal? list-signal-handling",
      assignments: true,
      directory: "C chdir",
      textOptions: "S split-string",
    },
  ],
  ["timeout", { options: "k: s: v kill-after: signal: foreground preserve-status verbose p f", before: 1 }],
  ["nice", { options: "n: adjustment:", numeric: true }],
  ["nohup", {}],
  ["time", { options: "p a v q f: format: o:> output:> append verbose portability quiet" }],
  ["stdbuf", { options: "i: o: e: input: output: error:" }],
  ["command", { options: "p" }],
  ["builtin", {}],
  ["exec", { options: "c l a:" }],
  [
    "xargs",
    {
      options:
        "0 null a:< arg-file:< d: delimiter: E: e? eof? I: i? replace? L: l? max-lines? n: max-args: o open-tty P: " +
        "max-procs: p interactive process-slot-var:! r no-run-if-empty s: max-chars: show-limits t verbose x exit",
    },
  ],
  ["setsid", { options: "c f w ctty fork wait", reason: starts("setsid") }],
  ["ionice", { options: "c: n: p: P: u: t class: classdata: ignore", reason: starts("ionice") }],
  ["chrt", { options: "b f i o r a p v d T: P: D:", before: 1, reason: starts("chrt") }],
  ["taskset", { options: "a c p", before: 1, reason: starts("taskset") }],
  [
    "flock",
    {
      options:
        "s x e n u o w: E: F shared exclusive unlock nonblock nb close wait: timeout: conflict-exit-code: verbose",
      before: 1,
      writesBefore: true,
      textAfterC: true,
      reason: starts("flock"),
    },
  ],
  [
    "watch",
    {
      options:
        "n: d? t b e g c x p q: w r interval: differences? no-title beep errexit chgexit color exec precise equexit: no-wrap no-rerun",
      text: true,
      reason: starts("watch"),
    },
  ],
  [
    "sudo",
    {
      options:
        "A b B E e! H i! K k l n N P S s! v u: g: p: C: D: r: t: T: h: U: R: a: user: group: chdir: chroot: " +
        "non-interactive preserve-env? stdin set-home login! shell! edit!",
      assignments: true,
      directory: "D chdir",
      reason: "sudo runs as another user",
    },
  ],
  ["doas", { options: "n s! L C: u: a:", reason: "doas runs as another user" }],
  ["busybox", { reason: starts("busybox") }],
  ["toybox", { reason: starts("toybox") }],
  ["chroot", { options: "userspec: groups: skip-chdir", before: 1, reason: starts("chroot") }],
  ["fakeroot", { reason: starts("fakeroot") }],
  ["chronic", { reason: starts("chronic") }],
  ["unbuffer", { options: "p", reason: starts("unbuffer") }],
  ["catchsegv", { reason: starts("catchsegv") }],
  [
    "strace",
    { options: "f c C q v t r y e: o:> p: s: u: E: a: S: P: I: O: b: x T", reason: starts("strace") },
  ],
  ["ltrace", { options: "f c C S e: o:> p: s: u: l: n: a: x: t r T", reason: starts("ltrace") }],
  [
    "parallel",
    {
      options: "j: k N: n: L: I: a:< X m q t v jobs: keep-order will-cite bar",
      text: true,
      reason: starts("parallel"),
    },
  ],
  ["entr", { options: "a c d n p r s! z", reason: starts("entr") }],
  ["setarch", { options: "R", before: 1, reason: starts("setarch") }],
  ["pkexec", { options: "user: disable-internal-agent", reason: starts("pkexec") }],
  [
    "runuser",
    { options: "l! u: g: c: command: s: shell:", textOptions: "c command", reason: starts("runuser") },
  ],
]);

/** Programs that start others in ways no table follows; the rest of their words is compared with deny rules too. */
export const launchers: ReadonlySet<string> = new Set(
  (
    "su script unshare nsenter firejail proot systemd-run start-stop-daemon dbus-run-session setpriv prlimit numactl " +
    "torsocks proxychains proxychains4 gdb ld.so ld-linux-x86-64.so.2 sshpass bwrap capsh runcon sg newgrp gosu su-exec " +
    "tini dumb-init expect screen tmux at batch crontab rlwrap valgrind perf hyperfine"
  ).split(" "),
);

/** Programs that people allow by name, and that start others; only deny rules look at what follows. */
export const runners: ReadonlySet<string> = new Set(
  "npx pnpx bunx uvx pipx ssh docker podman kubectl".split(" "),
);

/** Programs that start others by one of their commands. */
export const managers: ReadonlyMap<string, readonly string[]> = new Map([
  ...["npm", "pnpm", "yarn"].map((name): [string, string[]] => [name, ["exec", "x", "dlx"]]),
  ...["bun", "bundle", "poetry", "uv", "pipenv", "mise", "asdf"].map((name): [string, string[]] => [
    name,
    ["exec", "x", "run"],
  ]),
]);

export const shells: ReadonlyMap<string, "bash" | "sh" | "other"> = new Map([
  ["bash", "bash"],
  ["rbash", "bash"],
  ["sh", "sh"],
  ["dash", "sh"],
  ["ash", "sh"],
  ["zsh", "other"],
  ["ksh", "other"],
  ["mksh", "other"],
  ["fish", "other"],
  ["csh", "other"],
  ["tcsh", "other"],
  ["pwsh", "other"],
]);
