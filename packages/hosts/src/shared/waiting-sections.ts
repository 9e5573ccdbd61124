import type { WaitingPart } from "@retinue/core/kernel/project/project-trust.ts";
import { stripControlCharacters } from "./strip-control-characters.ts";

interface WaitingSection {
  readonly title: string;
  readonly members: readonly { readonly text: string; readonly from: string }[];
}

/** What a folder would run and set if it were trusted, under headings, as text for a terminal. */
export function waitingSections(parts: readonly WaitingPart[]): readonly WaitingSection[] {
  return [...Map.groupBy(parts, ({ kind }) => kind)].map(([kind, members]) => ({
    title: titles[kind],
    members: members.map(({ name, value, from }) => ({
      text: stripControlCharacters(value === undefined ? name : `${name}: ${value}`),
      from: stripControlCharacters(from),
    })),
  }));
}

const titles: Readonly<Record<WaitingPart["kind"], string>> = {
  runs: "Would run programs",
  variable: "Would set variables for every command",
  right: "Would allow without asking",
  setting: "Other settings that would count",
};
