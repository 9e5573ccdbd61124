/** A verb with a result; "help", "assist", "handle" and "support" are left out because they name none. */
export function namesAction(text: string): boolean {
  return actionVerb.test(text);
}

/** A situation or words that call for the agent. */
export function namesTrigger(text: string): boolean {
  const concrete = text.replace(emptyTrigger, " ");
  return triggers.some((pattern) => pattern.test(concrete));
}

/** Something the agent is not for, or does not do. */
export function namesLimits(text: string): boolean {
  const concrete = text.replace(/\bnot only\b/gi, " ");
  return limits.some((pattern) => pattern.test(concrete));
}

/** Words that would fit any agent. */
export function isPlatitude(text: string): boolean {
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
