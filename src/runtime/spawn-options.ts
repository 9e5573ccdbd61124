import type { SpawnRequest } from "../planning/spawn-request.ts";

/** What a program may say about a child. */
export type SpawnOptions = Partial<Omit<SpawnRequest, "agentType" | "prompt" | "origin" | "callId">>;

/** A few words for people, where the program gave none. */
export function describeTask(agentType: string, prompt: string): string {
  const words = prompt.trim().split(/\s+/).slice(0, 6).join(" ");
  return `${agentType}: ${words.slice(0, 60)}`;
}
