// @io
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** The command lines of living processes that hold a text; zombies have none. Where there is a /proc it costs no process. */
export function livingCommands(marker: string): readonly string[] {
  const lines =
    process.platform === "linux"
      ? readdirSync("/proc").flatMap((pid) => (/^\d+$/.test(pid) ? [commandOf(pid)] : []))
      : execFileSync("ps", ["-eo", "stat=,args="], { encoding: "utf8" })
          .split("\n")
          .filter((line) => !line.startsWith("Z"));
  return lines.filter((line) => line.includes(marker));
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}
