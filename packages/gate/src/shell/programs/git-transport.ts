import type { GitTransport } from "../model.ts";
import { hasOption, type ScannedWords } from "../word.ts";

const remoteVerbs: ReadonlySet<string> = new Set(["update", "show", "prune", "set-head"]);
const submoduleVerbs: ReadonlySet<string> = new Set(["update", "add", "init", "sync"]);

/** Which repositories a git command reaches; undefined for one that stays in its own. */
export function gitTransport(name: string, scanned: ScannedWords): GitTransport | undefined {
  const operands = scanned.operands.map(({ text }) => text);
  const [first, ...rest] = operands;
  switch (name) {
    case "fetch":
      return { verb: "exchange", named: hasOption(scanned, "multiple") ? operands : operands.slice(0, 1) };
    case "pull":
    case "push":
    case "ls-remote":
      return { verb: "exchange", named: operands.slice(0, 1) };
    case "clone":
      return { verb: "clone", named: operands.slice(0, 1) };
    case "remote":
      return first !== undefined && remoteVerbs.has(first)
        ? { verb: "exchange", named: first === "update" ? [] : rest.slice(0, 1) }
        : undefined;
    case "submodule":
      return first !== undefined && submoduleVerbs.has(first) ? { verb: "submodule", named: [] } : undefined;
    case "rebase":
      return hasOption(scanned, "i", "interactive") ? { verb: "edit", named: [] } : undefined;
    default:
      return undefined;
  }
}
