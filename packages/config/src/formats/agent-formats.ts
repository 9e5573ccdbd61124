import { agentsFormat } from "./agents/agents-format.ts";
import { claudeFormat } from "./claude/claude-format.ts";
import { clineFormat } from "./cline/cline-format.ts";
import { codexFormat } from "./codex/codex-format.ts";
import { copilotFormat } from "./copilot/copilot-format.ts";
import { cursorFormat } from "./cursor/cursor-format.ts";
import { factoryFormat } from "./factory/factory-format.ts";
import type { FormatId } from "./format-facts.ts";
import { geminiFormat } from "./gemini/gemini-format.ts";
import { gooseFormat } from "./goose/goose-format.ts";
import { kiroFormat, kiroMarkdownFormat } from "./kiro/kiro-format.ts";
import { opencodeFormat, opencodeJsonFormat } from "./opencode/opencode-format.ts";
import { piFormat } from "./pi/pi-format.ts";
import type { AgentFormat } from "./portable-agent.ts";
import { qwenFormat } from "./qwen/qwen-format.ts";

/** Every format there is. Heavy: only loaded where a foreign file is read or written. */
export const agentFormats: Readonly<Record<FormatId, AgentFormat>> = {
  claude: claudeFormat,
  agents: agentsFormat,
  opencode: opencodeFormat,
  "opencode-json": opencodeJsonFormat,
  codex: codexFormat,
  copilot: copilotFormat,
  gemini: geminiFormat,
  qwen: qwenFormat,
  cursor: cursorFormat,
  factory: factoryFormat,
  kiro: kiroFormat,
  "kiro-md": kiroMarkdownFormat,
  cline: clineFormat,
  goose: gooseFormat,
  pi: piFormat,
};
