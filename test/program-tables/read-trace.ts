import { join } from "node:path";

/** A file that a program opened or changed. */
export interface Touched {
  /** Where links that lead to it were followed. */
  readonly path: string;
  readonly use: "read" | "write";
}

/** What one command did besides computing. */
export interface Deeds {
  /** Programs it started, files it tried to change, connections: each as the call that was traced. */
  readonly acts: readonly string[];
  readonly touched: readonly Touched[];
}

const changing =
  "unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,chmod,fchmodat," +
  "chown,lchown,fchownat,truncate,utimensat,setxattr,lsetxattr,removexattr";

/** Arguments of strace. */
export const tracing = [
  "-f",
  "-y",
  "--seccomp-bpf",
  "-s",
  "300",
  "-e",
  "signal=none",
  "-e",
  `trace=chdir,execve,execveat,openat,open,creat,connect,${changing}`,
];

/** Folders that are not there: going to them announces a command in a trace, and its end. */
export const announce = (at: number): string => `cd /.command-${at} 2>&-`;
export const announceEnd = "cd /.command-end 2>&-";

/** What each command did; its own start is left out. */
export function readTrace(trace: string): readonly Deeds[] {
  const deeds: { acts: string[]; touched: Touched[]; started: number }[] = [];
  let current: (typeof deeds)[number] | undefined;
  for (const line of trace.split("\n")) {
    const call = line.replace(/^\d+\s+/, "");
    const [, announced] = /^chdir\("\/\.command-(\d+|end)"\)/.exec(call) ?? [];
    if (announced === "end") current = undefined;
    else if (announced !== undefined) {
      current = { acts: [], touched: [], started: 0 };
      deeds[Number(announced)] = current;
    } else if (current !== undefined) {
      current.touched.push(...readTouched(call));
      if (!isAct(call)) continue;
      if (call.startsWith("execve")) current.started += 1;
      if (!call.startsWith("execve") || current.started > 1) current.acts.push(call.slice(0, 250));
    }
  }
  return deeds;
}

const quiet = /"\/dev\/(?:null|tty|stdout|stderr|fd\/\d+)"|"\/proc\/self\//;

function isAct(call: string): boolean {
  if (/^(?:\+\+\+|---|<\.\.\.|chdir|$)/.test(call)) return false;
  if (call.startsWith("connect")) return /sa_family=AF_INET/.test(call);
  if (call.startsWith("execve")) return !/= -1 ENOENT/.test(call);
  if (/^open(?:at)?\(/.test(call)) return opensToWrite(call) && !quiet.test(call);
  return true;
}

function opensToWrite(call: string): boolean {
  return /O_WRONLY|O_RDWR|O_CREAT|O_TRUNC/.test(call);
}

const named = /(?:AT_FDCWD(?:<([^>]*)>)?|\d+<([^>]*)>), "([^"]*)"|\("([^"]*)"|, "([^"]*)"/g;

function readTouched(call: string): Touched[] {
  if (/^(?:\+\+\+|---|<\.\.\.|chdir|execve|connect|$)/.test(call)) return [];
  if (/^(?:open|openat|creat)\(/.test(call)) {
    if (quiet.test(call) || call.includes("O_DIRECTORY")) return [];
    const use = opensToWrite(call) || call.startsWith("creat") ? "write" : "read";
    const opened = /= \d+<([^>]*)>$/.exec(call)?.[1];
    if (opened !== undefined) return [{ path: opened, use }];
    return use === "write" ? pathsOf(call).map((path) => ({ path, use })) : [];
  }
  return pathsOf(call).map((path) => ({ path, use: "write" }));
}

function pathsOf(call: string): string[] {
  const isLink = /^(?:sym)?link(?:at)?\(/.test(call);
  return [...call.matchAll(named)]
    .map(([, from, folder, name, first, second]) => {
      const path = name ?? first ?? second ?? "";
      return path.startsWith("/") ? path : join(from ?? folder ?? "", path);
    })
    .slice(isLink ? -1 : 0);
}
