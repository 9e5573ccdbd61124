import type { AssistantBlock, AssistantMessage, ProviderBlock } from "../../conversation/message.ts";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";

/** What a provider wants back with a block it made: signatures, item ids, encrypted reasoning. By provider, then key. */
export type ProviderOptions = Readonly<Record<string, JsonRecord>>;

export interface BlockOptions {
  /** Where the block is among the blocks that are not the provider's own. */
  readonly at: number;
  readonly type: string;
  readonly options: ProviderOptions;
}

/**
 * The block that closes a message and says which provider made it and what it wants back. Kept apart from the blocks it
 * is about, so that the message stays readable for every other model.
 */
export function originBlock(provider: string, parts: readonly BlockOptions[]): ProviderBlock {
  return { type: "provider", provider, parts };
}

/** The options for each block of a message by its place; undefined when another provider made the message. */
export function originOf(
  message: AssistantMessage,
  provider: string,
): ReadonlyMap<AssistantBlock, ProviderOptions> | undefined {
  const origin = message.content.find((block) => block.type === "provider" && block["provider"] === provider);
  if (origin === undefined || !("parts" in origin) || !Array.isArray(origin["parts"])) return undefined;
  const blocks = message.content.filter(({ type }) => type !== "provider");
  const found = new Map<AssistantBlock, ProviderOptions>();
  for (const part of origin["parts"].filter(isRecord)) {
    const block = blocks[Number(part["at"])];
    const options = part["options"];
    // A block of another kind at this place means that the message was changed since.
    if (block !== undefined && block.type === part["type"] && isProviderOptions(options))
      found.set(block, options);
  }
  return found;
}

export function isProviderOptions(value: unknown): value is ProviderOptions {
  return isRecord(value) && Object.values(value).every(isRecord);
}
