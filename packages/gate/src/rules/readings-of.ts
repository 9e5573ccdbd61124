/** Names of one subcommand, by program; the first is the usual one. */
const sameCommands: ReadonlyMap<string, readonly (readonly string[])[]> = new Map(
  Object.entries({
    npm:
      "install i in ins inst insta instal isnt isnta isntal isntall add; ci clean-install ic install-clean isntall-clean; " +
      "uninstall un unlink remove rm r; update up upgrade udpate; test t tst; run run-script rum urn; exec x; list ls ll la; " +
      "view info show v; config c; link ln; dist-tag dist-tags; owner author; login adduser add-user; version verison; " +
      "install-test it; install-ci-test cit; create init innit; publish; unpublish; deprecate; undeprecate; access; token; " +
      "logout; start; stop; restart; pack; audit; cache; set; get; dedupe ddp; prune; rebuild rb; org ogr; team; hook; star; " +
      "unstar; profile; pkg; edit; explore; explain why; outdated; doctor; repo; docs home; bugs issues; search s se find; " +
      "shrinkwrap; root; prefix; ping; whoami; fund; query; sbom; diff; completion; help; stars; trust; stage",
    pnpm: "install i; remove rm un uninstall; update up upgrade; list ls; run run-script; test t tst; link ln; exec; publish",
    yarn: "upgrade up; remove; global",
    bun: "install i; add a; remove rm; update; run; x",
    cargo: "build b; check c; doc d; run r; test t; remove rm",
    brew: "uninstall remove rm; list ls; upgrade; install",
    docker:
      "run; rmi image-rm image-remove; images image-ls image-list; ps container-ls container-list container-ps; rm container-rm container-remove",
    helm: "uninstall del delete un; list ls; upgrade",
    apt: "remove; purge; install",
  }).map(([program, groups]) => [program, groups.split("; ").map((group) => group.split(" "))]),
);
const abbreviating: ReadonlySet<string> = new Set(["npm"]);

/** Words before a subcommand that may be left out: `docker container run` is `docker run`. */
const leftOut: ReadonlyMap<string, RegExp> = new Map([
  ...["docker", "podman"].map((name): [string, RegExp] => [
    name,
    /^(?:container|image|system|builder|buildx)$/,
  ]),
  ["gcloud", /^(?:alpha|beta)$/],
  ["yarn", /^npm$/],
]);

/** Programs that people mean by one name. */
const families: readonly (readonly string[])[] = [
  ["python", "python3"],
  ["pip", "pip3"],
  ["apt", "apt-get"],
  ["node", "nodejs"],
];

const deepest = 3;
const farthest = 60;
const maxReadings = 64;
const maxSpellings = 512;
/** Of a long command there are fewer, so that they hold no more characters than this together. */
const maxCharacters = 200_000;

interface Readings {
  readonly readings: readonly (readonly string[])[];
  /** There are more than were listed. */
  readonly isIncomplete: boolean;
}

/**
 * Other ways to read a command for rules that restrict. Which of a program's options take a value is not known for all
 * programs, so a word after an option may be its value or the subcommand: `kubectl -n a delete x` is also read as
 * `kubectl delete x`. Names that mean the same subcommand or program are all given.
 */
export function readingsOf([program = "", ...rest]: readonly string[]): Readings {
  const found = new Map<string, readonly string[]>();
  // A subcommand is among the first words; what follows is kept as it is.
  const far = rest.slice(farthest).join(" ");
  const near = far === "" ? rest : [...rest.slice(0, farthest), far];
  const length = near.reduce((sum, word) => sum + word.length + 1, program.length);
  const few = Math.max(2, Math.min(maxReadings, Math.floor(maxCharacters / length)));
  const plain = withoutOptions(near, deepest);
  for (const reading of plain.slice(0, few))
    for (const name of programNames(program))
      for (const words of sameReadings(name, reading))
        found.set([name, ...words].join(" "), [name, ...words]);
  const most = Math.max(few, Math.min(maxSpellings, Math.floor((4 * maxCharacters) / length)));
  const readings = [...found.values()].slice(0, most);
  return { readings, isIncomplete: plain.length > few || found.size > most };
}

/** The name without its version, and what else the program is called. */
function programNames(program: string): readonly string[] {
  const plain = program.replace(/^([A-Za-z]+[A-Za-z+-]*?)(?:-?\d[\d.]*)$/, "$1");
  const family = families.find((names) => names.includes(program) || names.includes(plain)) ?? [];
  return [...new Set([program, plain, ...family])];
}

/** The words with options left out before the first words that are none, in every way in which they can be read. */
function withoutOptions(words: readonly string[], depth: number): readonly (readonly string[])[] {
  if (depth === 0 || words.length === 0) return [words];
  const readings: (readonly string[])[] = [words];
  for (const at of placesOfCommand(words)) {
    const head = words[at] ?? "";
    for (const tail of withoutOptions(words.slice(at + 1), depth - 1)) readings.push([head, ...tail]);
    if (readings.length > maxReadings) break;
  }
  return readings;
}

/** Where the first word may be that is neither an option nor the value of one. */
function placesOfCommand(words: readonly string[]): readonly number[] {
  const places: number[] = [];
  for (const [at, word] of words.entries()) {
    if (/^[-+]./.test(word)) continue;
    places.push(at);
    const before = words[at - 1] ?? "";
    if (!before.startsWith("-") || before.includes("=")) break;
  }
  return places;
}

function sameReadings(program: string, words: readonly string[]): readonly (readonly string[])[] {
  const [first = "", ...rest] = words;
  const [second = "", ...others] = rest;
  const readings: (readonly string[])[] = [words];
  if (leftOut.get(program)?.test(first) === true) readings.push(rest);
  const groups = sameCommands.get(program === "podman" ? "docker" : program) ?? [];
  const names = groups.flatMap((group) => {
    const isMeant =
      group.includes(first) ||
      (abbreviating.has(program) && first.length > 1 && group.some((name) => name.startsWith(first)));
    return isMeant ? group : [];
  });
  const pairs = groups.filter((group) => group.includes(`${first}-${second}`)).flat();
  return [
    ...readings,
    ...names.map((name) => [...spelledOut(program, name), ...rest]),
    ...pairs.map((name) => [...spelledOut(program, name), ...others]),
    ...(program === "docker" || program === "podman"
      ? [
          ["container", ...words],
          ["image", ...words],
        ]
      : []),
  ];
}

/** `image-rm` is for `image rm`. */
function spelledOut(program: string, name: string): readonly string[] {
  return program === "docker" || program === "podman" ? name.split("-") : [name];
}
