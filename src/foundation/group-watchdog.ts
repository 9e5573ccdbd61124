// @io
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { spawnGuarded } from "./spawn-process.ts";

/** Ends process groups once this process is gone, however it ended; one small process does that for all of them. */
export interface GroupWatchdog {
  /** From now on the group dies with this process, until `release` is called. */
  watch(leader: number): WatchedGroup;
  /** Lets the watchdog end where nothing is left to watch; the next group starts another one. */
  rest(): void;
}

export interface WatchedGroup {
  release(): void;
}

/** How long a watchdog without a group stays, so that one command after the other does not start one each. */
const idleMs = 5_000;

/**
 * The watchdog reads from a pipe that only this process can write to. Even after SIGKILL the system closes that pipe, and then
 * the watchdog asks every group it knows of to end, and kills what is left half a second later. Where it cannot be started,
 * nothing else changes: commands then live on when this process is killed, until their session is resumed.
 */
export function createGroupWatchdog(startOf = readStart): GroupWatchdog {
  const groups = new Map<number, string>();
  let dog: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;

  function report(text: string): void {
    if (dog?.stdin?.writable === true) dog.stdin.write(text);
  }

  function leave(): void {
    clearTimeout(idle);
    idle = undefined;
    dog?.stdin?.end();
    dog = undefined;
  }

  function start(): void {
    const started = spawnWatchdog();
    if (started === undefined) return;
    dog = started;
    started.once("exit", () => {
      if (dog === started) dog = undefined;
    });
    // Another watchdog may have died; the new one takes over what it knew.
    for (const [leader, began] of groups) report(`+ ${leader} ${began}\n`);
  }

  return {
    watch(leader) {
      if (process.platform === "win32") return { release: () => undefined };
      clearTimeout(idle);
      const began = startOf(leader);
      groups.set(leader, began);
      if (dog === undefined) start();
      else report(`+ ${leader} ${began}\n`);
      return {
        release() {
          if (groups.get(leader) !== began) return;
          groups.delete(leader);
          report(`- ${leader}\n`);
          if (groups.size === 0 && dog !== undefined) idle = setTimeout(leave, idleMs).unref();
        },
      };
    },
    rest() {
      if (groups.size === 0) leave();
    },
  };
}

/** The one of this process: a pipe whose end means the end of the process cannot belong to a part of it. */
export const groupWatchdog: GroupWatchdog = createGroupWatchdog();

function spawnWatchdog(): ChildProcess | undefined {
  try {
    const child = spawnGuarded("/bin/sh", ["-c", script, "retinue-watchdog"], {
      // In a session of its own neither Ctrl+C nor a closed terminal reaches it.
      detached: true,
      cwd: "/",
      env: { PATH: "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin" },
      stdio: ["pipe", "ignore", "ignore"],
    });
    child.unref();
    // A pipe to a child is a socket, which keeps the process alive unless it is unreferenced.
    const { stdin } = child;
    if (stdin !== null && "unref" in stdin && typeof stdin.unref === "function") stdin.unref();
    return child;
  } catch {
    return undefined;
  }
}

/** The moment a process began, as the system counts; `-` where it does not report it. */
function readStart(pid: number): string {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, "latin1");
    return status.slice(status.lastIndexOf(")") + 2).split(" ")[19] ?? "-";
  } catch {
    return "-";
  }
}

/**
 * `groups` holds ` leader ` for each group. In /proc/N/stat the fields behind the name in parentheses are state, parent, group,
 * session and, as the twentieth, the start; a leader that began at another moment is somebody else who was given its number.
 */
const script = `
trap '' HUP INT TERM
groups=' '
starts=' '
forget() {
  kept=' '
  for one in $groups; do [ "$one" = "$1" ] || kept="$kept$one "; done
  groups=$kept
}
while read -r verb leader began; do
  forget "$leader"
  if [ "$verb" = + ]; then groups="$groups$leader "; starts=" $leader:$began$starts"; fi
done
[ "$groups" = ' ' ] && exit 0
fields() { line=; read -r line < "/proc/$1/stat" || return 1; line=\${line##*") "}; }
began() { shift 19; echo "$1"; }
for leader in $groups; do
  fields "$leader" || continue
  case "$starts" in *" $leader:- "*) continue ;; esac
  case "$starts" in *" $leader:$(began $line) "*) ;; *) forget "$leader" ;; esac
done 2>/dev/null
look() {
  [ "$1" = Z ] || [ "$1" = X ] && return
  case "$groups" in *" $3 "* | *" $4 "*) members="$members $pid" ;; esac
}
find_members() {
  members=
  if [ -e /proc/self/stat ]; then
    for file in /proc/[0-9]*; do
      pid=\${file#/proc/}
      fields "$pid" && look $line
    done
  else
    for leader in $groups; do kill -0 -- "-$leader" && members="$members -$leader"; done
  fi
} 2>/dev/null
send() {
  for one in $groups; do kill -s "$1" -- "-$one"; done
  for one in $members; do kill -s "$1" -- "$one"; done
} 2>/dev/null
find_members
send TERM
round=0
while [ "$round" -lt 60 ]; do
  find_members
  [ -z "$members" ] && exit 0
  [ "$round" -ge 10 ] && send KILL
  sleep 0.05
  round=$((round + 1))
done
`;
