import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const words =
  "review plan build read test search fix write check report file folder model prompt tool agent".split(" ");

/** Writes agent files like those people have: mostly clean, some with lists, examples or an unquoted colon. */
export function writeSampleAgents(
  folder: string,
  count: number,
  { clean }: { readonly clean: boolean },
): void {
  for (let index = 0; index < count; index += 1) {
    const directory = join(folder, `group-${index % 20}`);
    if (index < 20) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `agent-${index}.md`), sampleAgent(index, clean));
  }
}

function sampleAgent(index: number, clean: boolean): string {
  const description = `Use this agent to ${sentence(index, 18)}. Use when ${sentence(index + 3, 12)}.`;
  const shapes = [
    `description: ${description}\ntools: Read, Grep, Glob, Bash\nmodel: sonnet`,
    `description: "${description} It's #${index}."\ntools:\n  - Read\n  - Write\n  - Edit\nmodel: opus\ncolor: blue`,
    `description: >\n  ${description}\n  ${sentence(index + 7, 20)}\ntools: ["Read", "Grep"]\nmaxTurns: 20`,
    `description: ${description}\nmodel: inherit\npermissionMode: plan\nskills: house-style, testing`,
  ];
  const awkward = `description: ${description} Triggers: ${sentence(index + 9, 6)}: now.\ntools: Read, Grep`;
  const fields = !clean && index % 10 === 9 ? awkward : shapes[index % shapes.length];
  const body = Array.from({ length: 40 }, (_, line) => sentence(index + line, 14)).join("\n");
  return `---\nname: agent-${index}\n${fields}\n---\n\nYou are agent ${index}.\n\n${body}\n`;
}

function sentence(seed: number, length: number): string {
  return Array.from({ length }, (_, at) => words[(seed * 7 + at * 5) % words.length]).join(" ");
}
