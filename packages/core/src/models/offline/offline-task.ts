/** What the offline model can be asked for. */
export type OfflineTask =
  | { readonly type: "map"; readonly folder?: string }
  | { readonly type: "find"; readonly subject: string }
  | { readonly type: "read"; readonly file: string };

export interface ReadTask {
  readonly task: OfflineTask;
  /** The text also asks for a change, which this model never makes. */
  readonly wantsChange: boolean;
}

const findSigns =
  /\b(?:where(?:'s| is| are| do| does| did)?|find|locate|search(?: for)?|grep(?: for)?|look for|(?:who|what) (?:uses|calls|imports|references)|(?:usages?|uses|callers|references|occurrences) (?:of|to))\b/i;
const readSigns =
  /\b(?:read|summari[sz]e|explain|outline|describe|show|open|view|cat|what(?:'s| is| does))\b/i;
const mapSigns =
  /\b(?:map|overview|structure|layout|tour|explore|plan|architecture|what(?:'s| is) (?:here|in|this))\b/i;
const changeSigns =
  /^(?:please |can you |could you )?(?:add|fix|change|write|create|implement|refactor|rename|delete|remove|update|edit|move|replace|install|commit|make)\b/i;

/** Words around a subject that are not part of it. */
const leading =
  /^(?:is|are|do|does|did|we|you|i|the|an?|all|every|any|for|of|to|this|that|usages?|uses|callers|references|occurrences|function|class|method|variable|type|interface|constant|word|text|string|symbol|identifier|file|name|definition|code|me|out|where|how|which|files?|uses?|calls?|mentions?|contains?)\s+/i;
const trailing =
  /\s+(?:is|are|was|used|uses|defined|declared|called|implemented|handled|located|set|configured|mentioned|referenced|imported|exported|tested|done|made|here|function|class|method|variable|type|interface|constant|come from|in (?:this|the) (?:\w+\s?){1,2})$/i;

const fileName =
  /^(?:[\w@.~/\\-]*\.[A-Za-z][A-Za-z0-9]{0,9}|(?:[\w@.~/\\-]*\/)?(?:Makefile|Dockerfile|README|LICENSE|CHANGELOG|Justfile|Gemfile|Rakefile))$/;

/** Decides by words alone; what fits nothing asks for the map. */
export function readOfflineTask(text: string): ReadTask {
  const line = text.replace(/\s+/g, " ").trim().slice(0, 2000);
  return { task: decide(line), wantsChange: changeSigns.test(line) };
}

function decide(line: string): OfflineTask {
  const folder = folderIn(line);
  if (folder !== undefined) return { type: "map", folder };
  const find = findSigns.exec(line);
  if (find !== null) {
    const subject = subjectIn(line.slice(find.index + find[0].length));
    if (subject !== undefined) return { type: "find", subject };
  }
  const words = line.split(" ").map((word) => word.replace(/^[`"'(]+|[`"'),:;?!.]+$/g, ""));
  const file = words.find((word) => fileName.test(word));
  if (file !== undefined && (readSigns.test(line) || line === file)) return { type: "read", file };
  if (mapSigns.test(line)) return { type: "map" };
  const name = identifierIn(line);
  return name === undefined ? { type: "map" } : { type: "find", subject: name };
}

/** `map src`, `map the folder x`, `what is in src/tools`. */
function folderIn(line: string): string | undefined {
  const named = /\b(?:folder|directory)[ ]+[`"']?([\w@./\\-]+)[`"']?/i.exec(line)?.[1];
  const other =
    /\b([\w@./-]+\/)(?=[\s?.!,]|$)|\b(?:in|map|explore)[ ]+[`"']?([\w@.-]+(?:\/[\w@.-]+)+|src|lib|test|tests|docs|app|packages)[`"']?(?=[\s?.!,]|$)/i.exec(
      line,
    );
  const found = named ?? (mapSigns.test(line) ? (other?.[1] ?? other?.[2]) : undefined);
  const bare = found?.replace(/^[`"']|[`"',.?!]+$/g, "").replace(/(?<=.)\/+$/, "");
  if (found === "." || found === "./") return ".";
  return bare === undefined || bare === "" || /\.[A-Za-z][A-Za-z0-9]{0,9}$/.test(bare) ? undefined : bare;
}

function subjectIn(rest: string): string | undefined {
  const [, back, double, single] = /`([^`]+)`|"([^"]+)"|(?<!\w)'([^']+)'(?!\w)/.exec(rest) ?? [];
  const quoted = back ?? double ?? single;
  if (quoted !== undefined) return quoted;
  let text = rest
    .replace(/[?!.,:;]+(?=\s|$)/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  for (let before = ""; before !== text; ) {
    before = text;
    text = `${text} `.replace(leading, "").trim().replace(trailing, "").trim();
  }
  const name = identifierIn(text);
  if (name !== undefined) return name;
  return /^[\p{L}\p{N}_$.@#/-]{2,}(?: [\p{L}\p{N}_$.@#/-]+){0,3}$/u.test(text) ? text : undefined;
}

/** A word that only a program would contain: camelCase, snake_case, dotted, with a call's parentheses, or quoted. */
function identifierIn(text: string): string | undefined {
  const quoted = /`([^`\s]+)`/.exec(text)?.[1];
  if (quoted !== undefined) return quoted;
  const words = text.match(/[A-Za-z_$][\w$]*(?:(?:\.|::|#)[A-Za-z_$][\w$]*)*(?:\(\))?/g) ?? [];
  const found = words.find((word) => /[a-z0-9][A-Z]|_\w|\(\)$|::|\w#\w|^[A-Z]{2,}_|\w\.\w/.test(word));
  return found?.replace(/\(\)$/, "");
}
