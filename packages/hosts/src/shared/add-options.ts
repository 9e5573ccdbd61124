import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import { splitEntries } from "@retinue/core/kernel/options/find-bad-rule.ts";
import { type Command, Option, type OptionValues } from "commander";
import { misuse } from "./misuse.ts";
import {
  longName,
  type OptionEntry,
  type OptionNeed,
  type OptionValue,
  readSeconds,
} from "./option-entry.ts";

/** Adds options to a command, with everything that is checked about them before the command runs. */
export function addOptions(command: Command, entries: readonly OptionEntry[]): Command {
  for (const entry of entries) command.addOption(toOption(entry));
  command.hook("preAction", () => checkOptionValues(entries, command.opts()));
  return command;
}

function toOption(entry: OptionEntry): Option {
  const option = new Option(entry.flags, entry.description);
  option.argChoices = [...wordsOf(entry)];
  if (entry.group !== undefined) option.helpGroup(entry.group);
  if (entry.default !== undefined) option.default(entry.default);
  if (entry.isHidden === true) option.hideHelp();
  const read = readerOf(entry);
  return read === undefined ? option : option.argParser(read);
}

function wordsOf({ value }: OptionEntry): readonly string[] {
  return value !== undefined && "words" in value ? value.words : [];
}

type ReadValue = (text: string, earlier?: readonly string[]) => readonly string[];

/** What makes a list of strings; a value that stays a text is checked before its command runs. */
function readerOf(entry: OptionEntry): ReadValue | undefined {
  const { value } = entry;
  if (value?.type === "entries") return (text, earlier = []) => [...earlier, ...splitEntries(text)];
  if (value?.type === "word-list") return (text) => readWords(longName(entry), text, value.words);
  return entry.isRepeatable === true ? (text, earlier = []) => [...earlier, text] : undefined;
}

function readWords(option: string, text: string, known: readonly string[]): readonly string[] {
  const words = text.split(",").map((word) => word.trim());
  return words
    .filter((word) => word !== "")
    .map((word) => {
      if (known.includes(word)) return word;
      const nearest = nearestName(word, known);
      const example = `Write a list of ${known.join(", ")}, such as ${option} ${known.slice(0, 2).join(",")}.`;
      throw misuse(
        `Invalid ${option} "${word}".`,
        nearest === undefined ? example : `Did you mean ${nearest}? ${example}`,
      );
    });
}

/** Refuses values that cannot be meant, and combinations in which an option would be passed over. */
export function checkOptionValues(entries: readonly OptionEntry[], values: OptionValues): void {
  const given = new Map(entries.flatMap((entry) => givenValue(entry, values)));
  for (const [option, { entry, texts }] of given) {
    for (const text of texts) checkValue(option, entry.value, text);
    const rival = entry.conflicts?.find((other) => given.has(other));
    if (rival !== undefined) throw misuse(`${rival} and ${option} cannot be given together.`);
    if (entry.needs !== undefined && !entry.needs.some((need) => isMet(need, given)))
      throw misuse(`${option} has no meaning without ${entry.needs.map(written).join(" or ")}.`);
  }
}

interface GivenOption {
  readonly entry: OptionEntry;
  /** Its values as texts; empty for a flag. */
  readonly texts: readonly string[];
}

function givenValue(entry: OptionEntry, values: OptionValues): readonly [string, GivenOption][] {
  const option = new Option(entry.flags);
  const value: unknown = values[option.attributeName()];
  // `--no-ask` is there as true where it was not written.
  if (value === undefined || (option.negate && value !== false)) return [];
  const texts = (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string");
  return [[longName(entry), { entry, texts }]];
}

function isMet({ option, value }: OptionNeed, given: ReadonlyMap<string, GivenOption>): boolean {
  const found = given.get(option);
  return found !== undefined && (value === undefined || found.texts.includes(value));
}

function written({ option, value }: OptionNeed): string {
  return value === undefined ? option : `${option} ${value}`;
}

function checkValue(option: string, value: OptionValue | undefined, text: string): void {
  if (value?.type === "word") {
    if (value.words.includes(text) || value.accepts?.(text) === true) return;
    const nearest = nearestName(text, value.words);
    const choice = `Expected one of ${value.words.join(", ")}.`;
    throw misuse(
      `Invalid ${option} "${text}".`,
      nearest === undefined ? choice : `Did you mean ${nearest}? ${choice}`,
    );
  }
  if (value?.type === "number") {
    const number = Number(text);
    if (text.trim() !== "" && Number.isFinite(number) && value.isGood(number)) return;
    throw misuse(`${option} needs ${value.expected}, but got ${JSON.stringify(text)}.`);
  }
  if (value?.type === "duration" && readSeconds(text) === undefined)
    throw misuse(`${option} needs a duration such as 90s, 10m or 1h30m, but got ${JSON.stringify(text)}.`);
}
