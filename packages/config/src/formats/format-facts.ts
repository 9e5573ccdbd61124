import { agentSources } from "@retinue/base/foundation/option-words.ts";

/** Every format of agent files that can be read and written. */
export const formatIds = [
  "claude",
  "agents",
  "opencode",
  "opencode-json",
  "codex",
  "copilot",
  "gemini",
  "qwen",
  "cursor",
  "factory",
  "kiro",
  "kiro-md",
  "cline",
  "goose",
  "pi",
] as const;
export type FormatId = (typeof formatIds)[number];

interface FormatFacts {
  readonly title: string;
  /** The name under which `agentSources` knows it; another form of the same product shares it. */
  readonly source: string;
  /** Below a project's folder and below the home directory; the first is where files are written. */
  readonly project: readonly string[];
  readonly user: readonly string[];
  readonly files: RegExp;
  /** Folders below count too. */
  readonly isDeep?: true;
  /** The places are files, not folders. */
  readonly areFiles?: true;
}

/** Where each product keeps its agents. Light on purpose: the readers are loaded only for a source that is switched on. */
export const formatFacts: Readonly<Record<FormatId, FormatFacts>> = {
  claude: {
    title: "Claude Code",
    source: "claude",
    project: [".claude/agents"],
    user: [".claude/agents"],
    files: /\.md$/i,
    isDeep: true,
  },
  agents: {
    title: ".agents/agents",
    source: "agents",
    project: [".agents/agents"],
    user: [".agents/agents"],
    files: /\.md$/i,
    isDeep: true,
  },
  opencode: {
    title: "opencode",
    source: "opencode",
    project: [".opencode/agent", ".opencode/agents", ".opencode/mode", ".opencode/modes"],
    user: [".config/opencode/agent", ".config/opencode/agents"],
    files: /\.md$/i,
    isDeep: true,
  },
  "opencode-json": {
    title: "opencode (JSON)",
    source: "opencode",
    project: ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"],
    user: [".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"],
    files: /(?:^|\/)opencode\.jsonc?$/,
    areFiles: true,
  },
  codex: {
    title: "Codex",
    source: "codex",
    project: [".codex/agents", ".codex/config.toml"],
    user: [".codex/agents", ".codex/config.toml"],
    files: /\.toml$/i,
    isDeep: true,
  },
  copilot: {
    title: "GitHub Copilot and VS Code",
    source: "copilot",
    project: [".github/agents"],
    user: [".copilot/agents"],
    files: /\.md$/i,
  },
  gemini: {
    title: "Gemini CLI",
    source: "gemini",
    project: [".gemini/agents"],
    user: [".gemini/agents"],
    files: /^(?!_).*\.md$/i,
  },
  qwen: {
    title: "Qwen Code",
    source: "qwen",
    project: [".qwen/agents"],
    user: [".qwen/agents"],
    files: /\.md$/i,
  },
  cursor: {
    title: "Cursor",
    source: "cursor",
    project: [".cursor/agents"],
    user: [".cursor/agents"],
    files: /\.md$/i,
  },
  factory: {
    title: "Factory",
    source: "factory",
    project: [".factory/droids"],
    user: [".factory/droids"],
    files: /\.md$/i,
  },
  kiro: {
    title: "Kiro",
    source: "kiro",
    project: [".kiro/agents"],
    user: [".kiro/agents"],
    files: /\.json$/i,
  },
  "kiro-md": {
    title: "Kiro (Markdown)",
    source: "kiro",
    project: [".kiro/agents"],
    user: [".kiro/agents"],
    files: /\.md$/i,
  },
  cline: {
    title: "Cline",
    source: "cline",
    project: [".cline/agents"],
    user: [".cline/agents"],
    files: /\.ya?ml$/i,
  },
  goose: {
    title: "goose",
    source: "goose",
    project: [".goose/agents"],
    user: [".config/goose/agents"],
    files: /\.md$/i,
  },
  pi: {
    title: "pi-subagents",
    source: "pi",
    project: [".pi/agents"],
    user: [".pi/agent/agents"],
    files: /^(?!.*\.chain\.md$).*\.md$/i,
    isDeep: true,
  },
};

/** The words of `agentSources` and `--agents-from`. */
export const agentSourceNames: readonly string[] = agentSources;

export const defaultAgentSources: readonly string[] = ["claude", "agents"];

const otherNames: ReadonlyMap<string, string> = new Map([
  ["vscode", "copilot"],
  ["github", "copilot"],
  ["droid", "factory"],
  [".agents", "agents"],
  ["pi-subagents", "pi"],
  ["qwen-code", "qwen"],
  ["gemini-cli", "gemini"],
]);

/** The name of a source as it is known here; undefined for a word that names none. */
export function agentSourceOf(word: string): string | undefined {
  const lower = word.trim().toLowerCase();
  const name = otherNames.get(lower) ?? lower;
  return agentSourceNames.includes(name) ? name : undefined;
}

/** The format that a word names; of a product with two forms the first. */
export function formatOf(word: string): FormatId | undefined {
  const lower = word.trim().toLowerCase();
  const name = otherNames.get(lower) ?? lower;
  return formatIds.find((id) => id === name);
}

/** The folder of the project, or of the person, to which a file or folder with agents belongs. */
export function folderAbove(path: string, format: FormatId): string | undefined {
  return placeAbove(path, format)?.folder;
}

/** The path below the folder in which the product keeps its agents. */
export function pathInPlace(path: string, format: FormatId): string | undefined {
  const found = placeAbove(path, format);
  return found === undefined ? undefined : path.slice(found.folder.length + found.place.length + 2);
}

function placeAbove(
  path: string,
  format: FormatId,
): { readonly folder: string; readonly place: string } | undefined {
  const { project, user } = formatFacts[format];
  const plain = `${path.replaceAll("\\", "/")}/`;
  const place = [...project, ...user].find((each) => plain.includes(`/${each}/`));
  return place === undefined ? undefined : { folder: path.slice(0, plain.lastIndexOf(`/${place}/`)), place };
}

/** The format of a file by where it lies. */
export function formatOfFile(file: string): FormatId | undefined {
  const path = file.replaceAll("\\", "/");
  return formatIds.find((id) => {
    const { project, user, files, areFiles } = formatFacts[id];
    if (areFiles === true) return files.test(path);
    const folder = [...project, ...user].find((each) => path.includes(`/${each}/`));
    if ([...project, ...user].some((each) => path.endsWith(`/${each}`))) return files.test(path);
    return (
      folder !== undefined && files.test(path.slice(path.lastIndexOf(`/${folder}/`) + folder.length + 2))
    );
  });
}
