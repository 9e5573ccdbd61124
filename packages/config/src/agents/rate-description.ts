import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";

/** A verb with a result; "help", "assist", "handle" and "support" are left out because they name none. */
function namesAction(text: string): boolean {
  return actionVerb.test(text);
}

/** A situation or words that call for the agent. */
function namesTrigger(text: string): boolean {
  const concrete = text.replace(emptyTrigger, " ");
  return triggers.some((pattern) => pattern.test(concrete));
}

/** Something the agent is not for, or does not do. */
function namesLimits(text: string): boolean {
  const concrete = text.replace(/\bnot only\b/gi, " ");
  return limits.some((pattern) => pattern.test(concrete));
}

/** Words that would fit any agent. */
function isPlatitude(text: string): boolean {
  return platitude.test(text);
}

const actionVerb = new RegExp(
  `\\b(?:${[
    "add|answer|appl[yi]|architect|assess|audit|automat|bootstrap|build|calculat|captur|catch|challeng|check|classif[yi]",
    "clean|collect|compar|compil|configur|confirm|convert|coordinat|creat|debug|decid|decompos|delegat|deliver|deploy",
    "deriv|design|detect|diagnos|document|draft|edit|enforc|enrich|evaluat|execut|explain|explor|extract|fetch|find|fix",
    "format|gather|generat|identif[yi]|implement|improv|inspect|install|integrat|investigat|lint|locat|maintain|manag",
    "map|measur|merg|migrat|moderni[sz]|monitor|mov|optimi[sz]|orchestrat|organi[sz]|pars|patch|perform|plan|predict",
    "prepar|produc|profil|propos|prov|publish|quer[yi]|rank|read|recommend|refactor|releas|remov|renam|render|repair",
    "replac|report|reproduc|research|resolv|restructur|return|review|revis|rewrit|rout|run|saniti[sz]|scaffold|scan|scor",
    "screen|search|secur|select|simplif[yi]|simulat|sort|split|strip|structur|suggest|summari[sz]|synthesi[sz]|test|trac",
    "track|train|transform|translat|triag|troubleshoot|tun|turn|updat|upgrad|validat|verif[yi]|writ",
  ].join("|")})(?:e|es|s|ed|[a-z]?ing)?\\b|\\banaly[sz](?:e|es|ing)\\b|\\bsets? up\\b`,
  "i",
);

const triggers: readonly RegExp[] = [
  /\bproactive(?:ly)?\b/i,
  /\buse(?: (?:this|it|the|me|agent|skill|subagent|[\w-]+ agent)){0,3}(?: \w+ly)? (?:when|whenever|if|after|before|for|to|at|during|once|while|where|as soon as)\b/i,
  /\buse(?::| for:)/i,
  /\b(?:must|should|has to) be (?:used|invoked|called|run|consulted)\b/i,
  /\b(?:invoke|call|delegate|spawn|launch|dispatch|consult|activate)\b[^.]{0,40}\b(?:when|whenever|if|after|before)\b/i,
  /\b(?:used|invoked|called|spawned|launched|dispatched|triggered)\b[^.]{0,30}\b(?:when|whenever|after|before|by|for|at)\b/i,
  /\b(?:when|whenever) (?:the |a |an |any |your |there |users? |you |we |someone |asked|code |tests? |something |[\w-]+ing\b)/i,
  /\b(?:after|before) (?:the |a |an |any |each |every |you |code |commits?\b|merg|releas|deploy|[\w-]+ing\b)/i,
  /\b(?:triggers?|trigger phrases|keywords?|phrases like|examples?|usage)(?: on| include)?:/i,
  /\b(?:ideal|best|perfect|suited|useful|intended|meant) (?:for|when|to)\b/i,
  /\b(?:wenn|lorsque|quand|cuando|quando|wanneer)\b/i,
];

const limits: readonly RegExp[] = [
  /\bnot (?:for|to|a|an|intended|meant|suitable|used|responsible)\b/i,
  /\b(?:do|does|must|should|will|may) not\b|\bcannot\b|\b(?:don|doesn|won|can|mustn)['’]t\b|\bnever\b/i,
  /\b(?:only|solely|exclusively|strictly|limited to|restricted to|out of scope|unless|except|rather than|instead)\b/i,
  /\bread[- ]only\b/i,
  /\bwithout (?:chang|modif|edit|writ|touch|alter|fix)/i,
  /\bno (?:\w+ )?(?:changes|edits|writes|modifications)\b|\bdecides nothing\b|\bprohibited\b|\bavoids?\b/i,
];

/** "Use when needed" says nothing. */
const emptyTrigger =
  /\b(?:use[ds]?(?: this agent| it)? )?(?:when(?:ever)?|if|as|where) (?:it is |it's |you |the user )?(?:needed|necessary|appropriate|required|relevant|applicable|possible|useful|helpful|needs? (?:help|it|assistance|support)\b)/gi;

const platitude =
  /\b(?:helps?|assists?|handles?|supports?)\b[^.]{0,30}\b(?:code|coding|things|stuff|tasks?|programming|development|users?|you|everything|anything|questions?|projects?)\b|\bhelpful\b|\b(?:general|coding|ai) (?:helper|assistant)\b/i;

interface DescriptionParts {
  /** It says what the agent does. */
  readonly action: boolean;
  /** It says when to use it. */
  readonly trigger: boolean;
  /** It says what the agent is not for or does not do. */
  readonly limits: boolean;
}

export interface DescriptionRating extends DescriptionParts {
  /** How many of the three parts are there. */
  readonly score: 0 | 1 | 2 | 3;
  /** False where the patterns do not recognize the language; score and parts then mean nothing. */
  readonly judged: boolean;
  /** A model would have to guess when to delegate: worth a warning. */
  readonly vague: boolean;
  /** Empty unless the description is vague or too long. */
  readonly advice: readonly string[];
}

const proseAtMost = 1024;
const charactersAtMost = 4000;
const charactersAtLeast = 20;

/** Rates a description by the formula action, when to use, limits. */
export function rateDescription(description: string): DescriptionRating {
  checkArgument("The first argument of rateDescription()", checks.text, description);
  const text = description.slice(0, 2 * charactersAtMost).trim();
  const prose = text
    .replace(/<(example|commentary)>[\s\S]*?(?:<\/\1>|$)/gi, " ")
    .replace(/^[-* \t]*(?:context|user|assistant):.*$/gim, " ")
    .replace(/\s+/g, " ")
    .trim();
  if (!isJudgeable(prose)) return { ...unjudged, advice: lengthAdvice(description, "") };

  const parts: DescriptionParts = {
    action: namesAction(prose),
    trigger: hasExample.test(text) || namesTrigger(prose),
    limits: namesLimits(prose),
  };
  const { action, trigger, limits } = parts;
  const scores = [0, 1, 2, 3] as const;
  const score = scores[[action, trigger, limits].filter(Boolean).length] ?? 0;
  const vague = score < 2 || prose.length < charactersAtLeast;
  const advice = [...(vague ? vagueAdvice(prose, parts) : []), ...lengthAdvice(description, prose)];
  return { ...parts, score, judged: true, vague, advice };
}

const unjudged = {
  action: false,
  trigger: false,
  limits: false,
  score: 0,
  judged: false,
  vague: false,
} as const;

const hasExample = /<example>\s*\S|^[-* \t]*user:/im;

function vagueAdvice(prose: string, parts: DescriptionParts): string[] {
  return [
    ...summary(prose, parts),
    ...(parts.action
      ? []
      : ['Say what it does with a verb and an object, such as "Reviews SQL migrations for locks".']),
    ...(parts.trigger
      ? []
      : ['Say when to use it: "Use when …", "Use after …", or words the user would say, in quotes.']),
    ...(parts.limits
      ? []
      : ['Say what it is not for or does not do: "Not for …", "Does not …", "Read-only".']),
    `For example: ${skeleton(prose, parts)}`,
  ];
}

function summary(prose: string, parts: DescriptionParts): string[] {
  if (prose.length < charactersAtLeast) {
    return [
      `${prose.length} characters (examples aside) cannot show a model when to delegate: write one to three sentences.`,
    ];
  }
  if (isPlatitude(prose)) {
    return ["It would fit any agent: name the kind of work, files or problems that only this one is for."];
  }
  if (!parts.action && prose.split(" ").length <= 8) return ["It is only a title: add what the agent does."];
  return [];
}

/** Keeps a first sentence that already names an action, and shows the places to fill in. */
function skeleton(prose: string, parts: DescriptionParts): string {
  const [first = ""] = prose.split(/(?<=[.!?])\s/);
  const opening = first.replace(/[\s.!?:;,]+$/, "");
  const kept =
    parts.action && !isPlatitude(opening) && opening.length >= charactersAtLeast && opening.length <= 160;
  return [
    kept ? `${opening}.` : "<Verb>s <what> and returns <result>.",
    "Use when <situation>, or when the user asks to <words they would use>.",
    "Not for <neighbouring work>: use <other agent>.",
  ].join(" ");
}

function lengthAdvice(description: string, prose: string): string[] {
  const why = "The parent carries every description in every turn: move how the agent works into its prompt";
  if (description.length > charactersAtMost) {
    return [
      `${description.length} characters are too many (at most ${charactersAtMost} with examples). ${why} and keep two short examples.`,
    ];
  }
  if (prose.length > proseAtMost) {
    return [`${prose.length} characters without examples are too many (at most ${proseAtMost}). ${why}.`];
  }
  return [];
}

/** Whether English patterns say anything about this text: mostly Latin letters, and not plainly another language. */
function isJudgeable(text: string): boolean {
  const latin = text.match(/\p{Script=Latin}/gu)?.length ?? 0;
  const others = text.match(/(?!\p{Script=Latin})\p{L}/gu)?.length ?? 0;
  if (others > latin * 0.25) return false;
  const words = new Set(text.toLowerCase().match(/\p{L}+/gu) ?? []);
  const foreign = countOf(foreignWords, words);
  return foreign < 2 || countOf(englishWords, words) >= foreign;
}

function countOf(wanted: readonly string[], words: ReadonlySet<string>): number {
  return wanted.filter((word) => words.has(word)).length;
}

const englishWords: readonly string[] =
  "a an the and or of to for with when in on from by that this is are be use used not it you after before".split(
    " ",
  );

/** Short words of German, French, Spanish, Portuguese, Italian, Dutch and Polish that English does not have. */
const foreignWords: readonly string[] = [
  "der das und für wenn oder nicht ist eine einen nach bei mit zur zum von den wird verwenden nur prüft",
  "le les des une pour quand lorsque avec dans est sur aux utiliser et pas seulement",
  "el los las una para cuando del usar por que y sobre después código",
  "uma quando não ao depois revisa il gli della dei dopo che",
  "het een voor wanneer niet van gebruik nie dla przy lub gdy oraz",
].flatMap((line) => line.split(" "));
