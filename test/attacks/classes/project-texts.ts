import { type Attack, type AttackClass, family } from "../attack.ts";

const evil = "\u001b]0;EVIL\u0007";
const bytes = `$(printf %s ${Buffer.from(evil).toString("base64")} | base64 -d)`;
const inJson = "\\u001b]0;EVIL\\u0007";

const settings = (json: string) => `mkdir -p .claude; cat > .claude/settings.json << 'E'\n${json}\nE`;
const agentFile = (text: string) => `mkdir -p .claude/agents; cat > .claude/agents/evil.md << E\n${text}\nE`;

interface Shown {
  readonly id: string;
  readonly title: string;
  readonly command: readonly string[];
  readonly setup: string;
}

/** Texts of a project, and a command that shows each. */
const shown: readonly Shown[] = [
  {
    id: "text-rule",
    title: "a rule that is listed",
    command: ["permissions", "list"],
    setup: settings(`{"permissions":{"deny":["Bash(x${inJson} *)"]}}`),
  },
  {
    id: "text-hook",
    title: "a hook that is shown before trust",
    command: ["trust", "--show"],
    setup: settings(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x${inJson}"}]}]}}`),
  },
  {
    id: "text-agent",
    title: "an agent that is listed",
    command: ["agents"],
    setup: agentFile(`---\nname: evil\ndescription: Does it ${bytes} well. Use it.\n---\nx`),
  },
  {
    id: "text-prompt",
    title: "an agent's prompt",
    command: ["agents", "show", "evil"],
    setup: agentFile(`---\nname: evil\ndescription: Does it well. Use it.\n---\nx ${bytes}`),
  },
  {
    id: "text-mistake",
    title: "a mistake in an agent's file",
    command: ["agents", "check"],
    setup: agentFile(`---\nname: evil\ndescription: x\n"colour${inJson}": x\n---\nx`),
  },
  {
    id: "text-skill",
    title: "a skill that is listed",
    command: ["skills"],
    setup: `mkdir -p .claude/skills/evil; cat > .claude/skills/evil/SKILL.md << E\n---\ndescription: Does ${bytes} it.\n---\nx\nE`,
  },
  {
    id: "text-server",
    title: "a server that is listed",
    command: ["mcp", "get", "x"],
    setup: `cat > .mcp.json << 'E'\n{"mcpServers":{"x":{"command":"a${inJson}"}}}\nE`,
  },
  {
    id: "text-import",
    title: "an import that is missing",
    command: ["doctor"],
    setup: `echo "@missing${bytes}.md" > CLAUDE.md`,
  },
  {
    id: "text-import-run",
    title: "an import that is missing, in a run",
    command: [],
    setup: `echo "@missing${bytes}.md" > CLAUDE.md`,
  },
  {
    id: "text-file-name",
    title: "the name of a file",
    command: ["agents", "check"],
    setup: `mkdir -p .claude/agents; echo x > ".claude/agents/evil${bytes}.md"`,
  },
];

const printed: readonly Attack[] = shown.map(({ id, title, command, setup }) => ({
  id,
  title,
  why: "a terminal obeys the texts of a repository that no one has read yet",
  calls: [],
  script: ["Done."],
  needs: ["script"],
  alone: true,
  setup,
  policy: { isTrusted: false, ...(command.length === 0 ? {} : { command }) },
  effect: { prints: "\u001b]0;EVIL" },
  control: { by: "script", script: `script -qec 'printf %s "${bytes}"' /dev/null` },
}));

const everything = {
  hooks: {
    Stop: [{ hooks: [{ type: "command", command: "run-hook-command" }] }],
    PreToolUse: [
      {
        hooks: [
          { type: "http", url: "https://hook.example/path", headers: { "X-Token": "$SHOWN_HEADER" } },
          { type: "prompt", prompt: "shown-hook-prompt" },
        ],
      },
    ],
  },
  env: { SHOWN_NAME: "shown-env-value" },
  statusLine: { type: "command", command: "run-status-line" },
  apiKeyHelper: "run-key-helper",
  permissions: {
    allow: ["Bash(shown-allow *)"],
    additionalDirectories: ["/shown-folder"],
    defaultMode: "acceptEdits",
  },
  mcpServers: { s: { command: "run-settings-server" } },
};

const files = [
  `mkdir -p .claude/agents .claude/skills/sk .claude/commands; cat > .claude/settings.json << 'E'\n${JSON.stringify(everything)}\nE`,
  `cat > .mcp.json << 'E'\n{"mcpServers":{"m":{"command":"run-file-server","args":["shown-argument"],"env":{"A":"shown-server-env"}},"h":{"type":"http","url":"https://server.example/mcp","headers":{"X":"shown-server-header"}}}}\nE`,
  "cat > .claude/agents/a.md << 'E'\n---\nname: a\ndescription: Works. Use it.\npermissionMode: acceptEdits\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: run-agent-hook\nmcpServers:\n  own:\n    command: run-agent-server\n---\nx\nE",
  "cat > .claude/skills/sk/SKILL.md << 'E'\n---\ndescription: Does.\nallowed-tools: Bash(shown-skill-rule *)\n---\n!`run-skill-command`\nE",
  "cat > .claude/commands/c.md << 'E'\n---\ndescription: Does.\n---\n!`run-command-command`\nE",
].join("\n");

const parts: readonly (readonly [text: string, title: string])[] = [
  ["run-hook-command", "the command of a hook"],
  ["hook.example/path", "the address of a hook"],
  ["SHOWN_HEADER", "the headers of a hook"],
  ["shown-hook-prompt", "the prompt of a hook"],
  ["shown-env-value", "the value of a variable"],
  ["Bash(shown-allow *)", "a rule"],
  ["/shown-folder", "a folder"],
  ["run-settings-server", "a server in the settings"],
  ["run-file-server", "a server"],
  ["shown-argument", "the words of a server"],
  ["shown-server-env", "the environment of a server"],
  ["server.example/mcp", "the address of a server"],
  ["run-agent-hook", "a hook of an agent"],
  ["run-agent-server", "a server of an agent"],
  ["shown-skill-rule", "a rule of a skill"],
  ["run-skill-command", "a command of a skill"],
  ["run-command-command", "a command of a command"],
];

/** What is printed before a person decides, and what is not. */
export const projectTexts: AttackClass = {
  name: "project-texts",
  about: "what a repository shows, and what it would do unseen",
  policy: { modes: ["default"] },
  attacks: [
    ...printed,
    ...family(
      "who trusts a folder has to see everything that this lets run or sets",
      parts.map(([text, title], at) => [
        `unseen-${at + 1}`,
        [],
        title,
        {
          effect: { omits: text },
          // Printed only where the project does not say it, which would make the attack empty.
          control: {
            by: "script",
            script: `grep -rqF -e '${text}' .claude .mcp.json || echo '${text}'`,
          },
        },
      ]),
      {
        script: [],
        needs: ["script"],
        setup: files,
        policy: { isTrusted: false, command: ["trust", "--show"], project: "unseen" },
      },
    ),
  ],
};
