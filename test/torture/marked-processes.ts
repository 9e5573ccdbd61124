import { readdirSync, readFileSync } from "node:fs";

/** One process, reported from a later one that was given the same number. */
export interface MarkedProcess {
  readonly pid: number;
  readonly started: string;
  readonly command: string;
}

/** The variable by which everything that a tortured program starts can be recognised. */
export const markVariable = "RETINUE_TORTURE_MARK";

/** Every living process that inherited the mark, zombies excluded. Linux only. */
export function findMarked(mark: string): readonly MarkedProcess[] {
  const wanted = `${markVariable}=${mark}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && read(name, "environ").split("\0").includes(wanted))
    .flatMap((name) => {
      const started = startOf(Number(name));
      const command = read(name, "cmdline").replaceAll("\0", " ").trim().slice(0, 200);
      return started === undefined ? [] : [{ pid: Number(name), started, command }];
    });
}

export function isAlive({ pid, started }: MarkedProcess): boolean {
  return startOf(pid) === started;
}

/** Undefined for a process that has ended, also one that was not waited for. */
function startOf(pid: number): string | undefined {
  const status = read(String(pid), "stat");
  const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
  return status === "" || fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}
