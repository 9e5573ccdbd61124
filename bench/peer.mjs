/**
 * This project as a runner for a side-by-side bench of agent products: the built program, in print mode, with journal,
 * permissions, hooks and events on. `run` gives the command for one prompt against the bench's fake model.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { findNode } from "../bin/find-node.js";

const root = new URL("../", import.meta.url);
const node = findNode() ?? process.execPath;
const program = fileURLToPath(new URL("bin/retinue.js", root));
const manifest = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));

/** Children that run concurrently without the environment asking for more. */
const defaultLimit = 10;

export default {
  name: manifest.name,
  kind: "ours",
  protocol: "anthropic",
  runtime: "node 24",
  agentType: "general-purpose",
  version: () => manifest.version,
  cold: { version: [node, program, "--version"], help: [node, program, "--help"] },
  prepare() {},
  run: ({ prompt, mockUrl, ws, spec }) => ({
    argv: [node, program, "-p", "--dangerously-skip-permissions", "--model", "claude-sonnet-4-6", prompt],
    cwd: ws,
    env: {
      ANTHROPIC_BASE_URL: mockUrl,
      ANTHROPIC_API_KEY: "x",
      ...(spec?.children > defaultLimit && {
        CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS: String(spec.children),
      }),
    },
  }),
};
