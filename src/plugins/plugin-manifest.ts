import type { DocumentPath, Issue } from "../foundation/diagnostic.ts";
import {
  type ComponentPaths,
  type PluginHooks,
  type PluginMcpServers,
  readComponentPaths,
  readPluginHooks,
  readPluginMcpServers,
} from "./component-paths.ts";
import { createFieldReader, isJsonObject, type JsonObject, ownValue, wrongTypeIssue } from "./json-object.ts";
import { isSafeName } from "./read-inner-path.ts";

/** A plugin's `plugin.json`. What it does not name is absent; defaults are the business of the one that loads it. */
export interface PluginManifest {
  /** As written, even where it cannot serve as an id. */
  readonly name?: string;
  readonly version?: string;
  readonly displayName?: string;
  readonly description?: string;
  readonly defaultEnabled?: boolean;
  /** Replaces the default folder. */
  readonly agents?: ComponentPaths;
  /** Replaces the default folder. */
  readonly commands?: ComponentPaths;
  /** Adds to the default folder. */
  readonly skills?: ComponentPaths;
  readonly hooks?: PluginHooks;
  readonly mcpServers?: PluginMcpServers;
  /** The names of the values that a person is asked for, and what is said about each. */
  readonly userConfig?: ReadonlyMap<string, unknown>;
}

export interface PluginManifestReading {
  /** Undefined only when the value is not an object. */
  readonly manifest: PluginManifest | undefined;
  readonly issues: readonly Issue[];
}

/** Reads the value of a `plugin.json`. Never throws: what cannot be used is left out and reported. */
export function readPluginManifest(value: unknown, path: DocumentPath = []): PluginManifestReading {
  if (!isJsonObject(value)) return { manifest: undefined, issues: [notAnObject(path)] };
  const issues: Issue[] = [];
  const { name, ...texts } = readTexts(value, path, issues);
  issues.push(...checkName(name, path));
  const userConfig = readUserConfig(value, path, issues);
  return {
    manifest: {
      ...(name === undefined ? {} : { name }),
      ...texts,
      ...readComponents(value, path, issues),
      ...(userConfig === undefined ? {} : { userConfig }),
    },
    issues,
  };
}

function readTexts(value: JsonObject, path: DocumentPath, issues: Issue[]) {
  const read = createFieldReader(value, path, issues);
  const fields = {
    name: read.string("name"),
    version: read.string("version"),
    displayName: read.string("displayName"),
    description: read.string("description"),
    defaultEnabled: read.boolean("defaultEnabled"),
  };
  return withoutUndefined(fields);
}

function readComponents(value: JsonObject, path: DocumentPath, issues: Issue[]) {
  const component = <Result>(
    key: string,
    read: (written: unknown, path: DocumentPath, issues: Issue[]) => Result,
  ): Result | undefined => {
    const written = ownValue(value, key);
    return written === undefined ? undefined : read(written, [...path, key], issues);
  };
  return withoutUndefined({
    agents: component("agents", readComponentPaths),
    commands: component("commands", readComponentPaths),
    skills: component("skills", readComponentPaths),
    hooks: component("hooks", readPluginHooks),
    mcpServers: component("mcpServers", readPluginMcpServers),
  });
}

function readUserConfig(
  value: JsonObject,
  path: DocumentPath,
  issues: Issue[],
): ReadonlyMap<string, unknown> | undefined {
  const written = ownValue(value, "userConfig");
  if (written === undefined) return undefined;
  if (isJsonObject(written)) return new Map(Object.entries(written));
  issues.push(wrongTypeIssue([...path, "userConfig"], "an object"));
  return undefined;
}

function checkName(name: string | undefined, path: DocumentPath): Issue[] {
  if (name !== undefined && isSafeName(name)) return [];
  const isMissing = name === undefined || name.trim() === "";
  return [
    {
      severity: "warning",
      code: isMissing ? "plugin-name-missing" : "plugin-name-unsafe",
      path: isMissing ? path : [...path, "name"],
      message: isMissing
        ? "The plugin has no `name`; the name of its folder serves."
        : `The plugin name ${JSON.stringify(name.slice(0, 200))} cannot be part of an id; the name of its folder serves.`,
      advice: "Give it a name of lower-case letters, digits and hyphens.",
    },
  ];
}

function notAnObject(path: DocumentPath): Issue {
  return {
    severity: "error",
    code: "wrong-type",
    path,
    message: "A plugin manifest must be a JSON object; nothing of it was used.",
    advice: 'Write at least `{ "name": "my-plugin" }`.',
  };
}

type Defined<Fields> = { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> };

function withoutUndefined<Fields extends object>(fields: Fields): Defined<Fields> {
  // Object.fromEntries forgets the keys' types; the entries come from `fields` itself.
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Defined<Fields>;
}
