// @io
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { type TextBlock, textOf, type UserBlock, type UserMessage } from "../conversation/message.ts";
import type { LoopPorts } from "../loop/loop-ports.ts";
import { isInside } from "../permissions/permission-policy.ts";
import type { RunPlan } from "../planning/plan-tools.ts";

type Content = UserMessage["content"];

interface Mention {
  readonly path: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** More than a person writes into one prompt; the rest stays text. */
const maxMentions = 20;

/**
 * Adds the files of the working directories that a prompt names as `@path` or `@path#L10-20`, as the agent's own Read
 * shows them. Hooks and rules decide about each like about a call of the model; what they refuse stays text.
 */
export async function attachMentions(
  content: Content,
  { plan, ports }: { readonly plan: RunPlan; readonly ports: LoopPorts },
  signal: AbortSignal,
): Promise<Content> {
  const tool = ports.tools.find(({ name }) => name === "Read");
  const mentions = readMentions(textOf({ role: "user", content })).slice(0, maxMentions);
  if (tool === undefined || mentions.length === 0) return content;
  const blocks: UserBlock[] = [];
  for (const [index, mention] of mentions.entries()) {
    const file = await findFile(mention.path, plan);
    if (file === undefined) continue;
    const { path: _path, ...range } = mention;
    const input = { file_path: file, ...range };
    const call = { type: "tool_use", id: `mention-${index + 1}`, name: tool.name, input } as const;
    const authorization = await ports.authorize({ call, tool, input }, { signal });
    if (authorization.type === "denied") continue;
    const { paths, allowedBy } = authorization;
    const context = ports.toolContext(call.id, {
      signal,
      progress: () => undefined,
      ...(allowedBy === undefined ? {} : { allowedBy }),
      ...(paths === undefined ? {} : { approvedPaths: paths }),
    });
    const outcome = await tool.call(authorization.input, context);
    if (outcome.isError === true) continue;
    const shown = typeof outcome.content === "string" ? [textBlock(outcome.content)] : outcome.content;
    blocks.push(textBlock(`The prompt mentions ${mention.path}. This is what Read shows of it:`), ...shown);
  }
  if (blocks.length === 0) return content;
  return [...(typeof content === "string" ? [textBlock(content)] : content), ...blocks];
}

function textBlock(text: string): TextBlock {
  return { type: "text", text };
}

/** `@path`, `@"a path"`, either with lines behind it. */
export function readMentions(text: string): readonly Mention[] {
  const found = text.matchAll(/(?:^|\s)@(?:"([^"\n]+)"|([^\s"]+))/g);
  const mentions = [...found].map(([, quoted, bare = ""]) => {
    const written = quoted ?? bare.replace(/[.,;:!?)\]}'`]+$/, "");
    const [, path = written, first, last] = /^(.*?)#L(\d+)(?:-L?(\d+))?$/.exec(written) ?? [];
    if (first === undefined) return { path };
    const offset = Number(first);
    return { path, offset, limit: Math.max(1, Number(last ?? first) - offset + 1) };
  });
  const unique = new Map(mentions.map((mention) => [JSON.stringify(mention), mention]));
  return [...unique.values()].filter(({ path }) => path !== "");
}

async function findFile(path: string, { directory, policy }: RunPlan): Promise<string | undefined> {
  const home = policy.home ?? homedir();
  const file = resolve(directory, path.replace(/^~(?=\/|$)/, home));
  if (!isInside(file, policy.workingDirectories)) return undefined;
  const isFile = await stat(file).then(
    (stats) => stats.isFile(),
    () => false,
  );
  return isFile ? file : undefined;
}
