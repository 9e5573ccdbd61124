/**
 * What `acceptEdits` covers, by what a file is: its extension, its name and its place below a working directory. What is
 * not listed here is asked about. The tables are shown in docs/accepted-edits.md.
 */

/** Extensions of files that are read or run only when they are named. */
export const coveredExtensions: readonly (readonly [what: string, extensions: string])[] = [
  [
    "sources",
    `ts tsx mts cts js jsx mjs cjs vue svelte astro py pyi pyx ipynb rb php java kt scala go rs c h cc cpp cxx hh hpp hxx
    inl m mm s asm cu cl cs fs vb swift dart zig nim cr ex exs erl hrl hs lhs ml mli elm purs clj cljs cljc lua el lisp scm
    rkt tcl pl pm r jl f f90 pas adb ads sol vy sv vhd vhdl glsl vert frag wgsl hlsl metal wat sh bash zsh fish awk sql proto
    graphql gql thrift bats feature`,
  ],
  ["documents", "md mdx markdown txt rst adoc asciidoc org tex bib textile"],
  [
    "pages, styles and templates",
    "html htm xhtml css scss sass less styl pcss hbs handlebars ejs pug njk liquid twig erb haml slim mustache j2 jinja",
  ],
  ["data", "csv tsv jsonl ndjson geojson topojson po pot xliff xlf arb srt vtt snap golden xsd dtd"],
  [
    "pictures, sound and fonts",
    "svg png jpg jpeg gif webp avif ico bmp mp3 mp4 wav ogg webm woff woff2 ttf otf pdf",
  ],
];

/** Formats that data and configuration share: covered in folders for data, or where the name says that it is data. */
export const sharedFormats = "json json5 jsonc yaml yml toml xml ini properties edn";

/** Folders of data alone. Those for sources and tests are none: tools look for their configuration there too. */
export const dataFolders = `fixtures __fixtures__ mocks __mocks__ testdata test-data data datasets content contents posts images
  img media assets locales locale i18n lang langs translations messages schema schemas snapshots __snapshots__ seeds
  results reports`;

/** What is in these folders is handed out as it is: covered as `json` and `xml`. */
export const servedFolders = "public static";

/** Words for `json`, `yaml` and `xml`; the other formats are hardly ever data, but for the texts of a program. */
export const dataWords = `data dataset result results output outputs out report reports summary stats statistics metrics
  sample samples example records list lists items users people products orders events response responses request payload
  input inputs export dump todo todos notes log logs history questions answers scores prices schema openapi swagger
  expected fixture fixtures mock mocks snapshot countries currencies cities colors icons messages strings labels
  translations`;
export const textWords = "messages strings labels translations";

/** Folders whose documents are for people, even where their names are those of an agent's. */
export const documentFolders = `src lib test tests __tests__ spec specs e2e docs doc documentation public static resources
  notebooks fixtures __fixtures__ mocks __mocks__ testdata test-data data datasets content contents posts images img media
  assets locales locale i18n lang langs translations messages schema schemas snapshots __snapshots__ seeds results reports`;

/** Files without an extension, and hidden ones, that nothing runs. */
export const coveredNames = `license licence copying notice readme changelog changes history authors contributors
  maintainers credits thanks todo news version .gitignore .gitkeep .keep .npmignore .dockerignore .prettierignore
  .eslintignore .stylelintignore .helmignore .gcloudignore .vercelignore .slugignore .cfignore .editorconfig .env.example
  .env.sample .env.template .nojekyll .mailmap .git-blame-ignore-revs`;

/** Folders that hold programs of others, or what runs by itself. */
export const askedFolders = `node_modules bower_components jspm_packages vendor venv virtualenv site-packages
  dist-packages __pycache__ __pypackages__ githooks git-hooks husky lefthook ci requirements circleci buildkite jenkins
  devcontainer buildsrc build-logic tuist renv packrat magefiles site_scons`;

/** Folders directly in the project, or in one of its packages, whose sources tools load or run by themselves. */
export const loadedFolders = "config configs conf hooks skills startup initializers library";

/** Files whose extension is covered, and that steer programs all the same. Compared without case. */
export const askedNames: readonly (readonly [what: string, names: string])[] = [
  [
    "package managers and runtimes",
    `package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml pnpmfile.js pnpmfile.cjs
    bower.json component.json composer.json deno.json deno.jsonc deno.lock jsr.json import_map.json importmap.json
    bunfig.toml pyproject.toml setup.py setup.ini pip.ini uv.toml poetry.toml pdm.toml hatch.toml pixi.toml environment.yml
    environment.yaml conda.yml meta.yaml runtime.txt packages.txt apt.txt cargo.toml rust-toolchain.toml clippy.toml
    rustfmt.toml mix.exs package.swift packages.json global.json nuget.xml pom.xml settings.xml ivy.xml vcpkg.json
    conanfile.py conanfile.txt conandata.yml dub.json project.json project.clj deps.edn shadow-cljs.edn bb.edn elm.json
    spago.yaml stack.yaml package.yaml cabal.xml pubspec.yaml description.txt manifest.toml project.toml julia.toml
    info.toml extconf.rb gems.rb mise.toml asdf.toml devbox.json flox.toml devenv.yaml devenv.yml pnpmfile.mjs
    sitecustomize.py usercustomize.py pip.py pytest.py venv.py tox.py nox.py black.py ruff.py mypy.py flake8.py pylint.py
    unittest.py coverage.py isort.py twine.py wheel.py setuptools.py ensurepip.py uvicorn.py gunicorn.py alembic.py
    versioneer.py hubconf.py celeryconfig.py profiles.clj data_readers.clj data_readers.cljc perl5db.pl autoload.php
    prepend.php auto_prepend.php`,
  ],
  [
    "builds and tasks",
    `build.rs build.zig build.py build.pl build.jl build.clj build.sc build.xml build.sh build.dart makefile.pl setup.hs
    cmakelists.txt cmakepresets.json cmakeuserpresets.json meson_options.txt gradle.properties gulpfile.js wscript.py
    dodo.py tasks.py invoke.yaml noxfile.py fabfile.py locustfile.py magefile.go mage.go plopfile.js jakefile.js turbo.json
    nx.json workspace.json angular.json lerna.json rush.json taskfile.yml taskfile.yaml tasks.json tasks.toml
    makefile.toml nodemon.json pm2.json ecosystem.json forge.json electron-builder.json electron-builder.yml
    ember-cli-build.js truffle.js truffle-config.js compile_commands.json project.yml xmake.lua premake5.lua
    tup.lua rebar.config.script user.clj conf.py mkdocs.yml mkdocs.yaml _config.yml _config.yaml book.toml antora.yml
    docusaurus.js buf.yaml buf.gen.yaml sqlc.yaml sqlc.json codegen.yml codegen.yaml codegen.ts codegen.json
    openapitools.json gqlgen.yml cog.toml cliff.toml release.toml dist.toml goreleaser.yml goreleaser.yaml robofile.php
    castor.php phinx.php scoper.inc.php envoy.blade.php fuse.js keystone.ts alchemy.run.ts sanity.cli.ts setupproxy.js
    setupproxy.ts instrumentation.ts instrumentation.js project.swift premake4.lua tuprules.lua tupdefault.lua
    _targets.r _drake.r site_init.py pavement.py dvc.yaml dvc.yml env.py`,
  ],
  [
    "tests and checks",
    `conftest.py pytest.ini tox.ini tox.toml setupTests.ts setupTests.js setuptests.tsx jest.json vitest.json karma.js
    mocharc.json cypress.json playwright.json nightwatch.json wdio.js cucumber.js cucumber.yml biome.json biome.jsonc
    tslint.json dprint.json rome.json oxlintrc.json pyrightconfig.json mypy.ini ruff.toml pylintrc.toml bandit.yml
    rector.php ecs.php phpunit.xml psalm.xml behat.yml codeception.yml rubocop.yml standard.yml golangci.yml golangci.yaml
    sonar-project.properties codecov.yml coverage.json commitlint.js lint-staged.js lintstagedrc.json husky.json
    pre-commit-config.yaml lefthook.yml lefthook.yaml overcommit.yml knip.json knip.ts renovate.json renovate.json5
    dependabot.yml testem.js testem.cjs wallaby.js wallaby.cjs wallaby.ts backstop.js jasmine.js jasmine.mjs jasmine.json
    jasmine.ts`,
  ],
  [
    "continuous integration, containers and deployment",
    `gitlab-ci.yml azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml appveyor.yml jenkins.yml cloudbuild.yaml
    cloudbuild.yml cloudbuild.json buildspec.yml appspec.yml drone.yml woodpecker.yml wercker.yml circle.yml travis.yml
    cirrus.yml action.yml action.yaml docker-compose.yml docker-compose.yaml compose.yml compose.yaml docker-bake.json
    skaffold.yaml werf.yaml devspace.yaml tilt.py garden.yml okteto.yml devfile.yaml devcontainer.json gitpod.yml
    helmfile.yaml chart.yaml kustomization.yaml kustomization.yml serverless.yml serverless.yaml serverless.ts
    template.yaml samconfig.toml cdk.json sst.json pulumi.yaml vercel.json now.json netlify.toml firebase.json app.json
    eas.json app.yaml fly.toml render.yaml railway.json railway.toml wrangler.toml wrangler.json wrangler.jsonc heroku.yml
    captain-definition.json deploy.php playbook.yml site.yml ansible.ini main.workflow`,
  ],
  [
    "instructions and tools of agents",
    `agents.md agent.md claude.md claude.local.md gemini.md qwen.md codex.md crush.md warp.md opencode.md copilot.md
    copilot-instructions.md cursor.md cline.md roo.md goose.md jules.md amp.md devin.md kiro.md kilo.md replit.md aider.md
    windsurf.md junie.md grok.md kimi.md iflow.md droid.md firebender.md skill.md mcp.json mcp.yaml mcp.toml opencode.json opencode.jsonc crush.json codex.toml gemini.json
    claude.json agents.json agents.yaml skills.json plugin.json hooks.json marketplace.json settings.json
    settings.local.json gemini-extension.json extension.json smithery.yaml modelfile.txt recipe.yaml`,
  ],
  ["editors", "launch.json extensions.json keybindings.json session.vim init.lua exrc.lua nvim.lua"],
];

/** Parts of a name by which a file of a covered kind steers a program, wherever it is. */
export const askedPatterns: readonly (readonly [shown: string, pattern: RegExp])[] = [
  [
    "`*.config.*`, `*.conf.*`, `*.setup.*`, `*.workspace.*`, `*.preset.*`",
    /\.(?:config|conf|setup|workspace|preset|rc)\./,
  ],
  ["`tsconfig*.json`, `jsconfig*.json`", /^[jt]sconfig[^/]*\.json[5c]?$/],
  [
    "`requirements*.txt`, `constraints*.txt`, `deps*.txt`",
    /^(?:[\w.-]*[-_.])?(?:requirements?|constraints?|reqs|deps|dependencies|pip|crontab)(?:[-_.][\w.-]*)?\.(?:txt|in)$/,
  ],
  [
    "`gulpfile.*`, `Gruntfile.*`, `Jakefile.*`, `fabfile.*` and the like",
    /^(?:gulp|grunt|jake|plop|cake|fab|nox|locust|mage|task|make|just|rake|guard|gem|pod|fast|danger|vagrant|docker|container|jenkins|earth|tilt|bun|bake|conan|wrangler|brew|cart|proc|snake|duty|pave|shake)file\./,
  ],
  [
    "`webpack.*.js`, `jest.*.ts` and others that begin with the name of a tool",
    /^(?:webpack|rollup|babel|eslint|prettier|stylelint|postcss|tailwind|jest|vitest|vite|karma|mocha|cypress|playwright|protractor|wdio|nightwatch|metro|next|nuxt|gatsby|svelte|astro|remix|esbuild|tsup|rspack|rslib|farm|parcel|gulp|grunt|release-it|semantic-release|commitlint|lint-staged|drizzle|knexfile|ormconfig|sequelize|hardhat|truffle|sst|wrangler|gunicorn|uwsgi|celery|docker-compose|compose|docker-bake)\.[^./]+\.[a-z]+$/,
  ],
  [
    "`knexfile.*`, `ormconfig.*`, `babel.*`, `webpack.*`",
    /^(?:knexfile|ormconfig|webpack|rollup|babel|esbuild)\.[a-z0-9]+$/,
  ],
  [
    "`*.instructions.md`, `*.prompt.md`, `*.agent.md`, `*.chatmode.md`",
    /\.(?:instructions?|prompts?|agents?|chatmode|mode|skill|rules?|command|hooks?)\.(?:md|mdx|markdown|txt|json|ya?ml)$/,
  ],
  ["`*lock.json`, `*lock.yaml` and the like", /lock(?:file)?\.(?:json[5c]?|ya?ml|toml|txt|xml)$/],
  [
    "`*-gdb.py`, `package@swift-*.swift`, `jupyter*config.py`",
    /-gdb\.py$|^package@swift|^jupyter\w*config\.(?:py|json)$/,
  ],
  ["`*mcp*.json` and the like", /^(?:.*[-_.])?mcp(?:[-_.].*)?\.(?:json[5c]?|ya?ml|toml)$/],
  [
    "`docker-compose-*.yml`, `taskfile-*.yml`",
    /^(?:.*[-_.])?(?:docker-compose|compose|taskfile)(?:[-_.].*)?\.ya?ml$/,
  ],
  ["`gatsby-*.js`", /^gatsby-(?:config|node|browser|ssr)\./],
  ["`*pipeline*.yml`, `*workflow*.yml`", /(?:pipelines?|workflows?)[^/]*\.ya?ml$/],
];

/** Directly in the project, or in one of its packages, tools find sources by names with these words. */
export const toolWords = `config conf cfg setup build builder install preinstall postinstall prepare prepublish release deploy
  publish task tasks hook hooks plugin plugins preload bootstrap register environment env workspace preset gulp grunt
  webpack rollup vite jest vitest karma babel eslint prettier entrypoint settings startup`;

/** There, names that end like these are found too: `celeryconfig.py`, `Brocfile.js`, `gdbinit.py`. */
export const toolEndings: readonly (readonly [shown: string, pattern: RegExp])[] = [
  ["`*config.*`, `*conf.*`, `*setup.*`", /(?:config|conf|setup)$/],
  ["`*rc.*`, `*init.*`", /[a-z]{3,}(?:rc|init)$/],
  [
    "`*file.*`, but for `profile.*`, `logfile.*` and the like",
    /^(?!(?:user)?profile$|(?:read|write|log|data|text|out|in|up|down|load|save|open|parse|temp|tmp|get|to|from|my|source)file$)[a-z]+file$/,
  ],
];

const groupFolders =
  "packages apps libs modules services crates projects workspaces plugins extensions examples";

/** Folders whose documents are read by agents. */
export const agentFolders =
  "agents agent subagents skills commands prompts rules instructions chatmodes steering memory-bank output-styles personas";

/** Documents that some agents read from the project itself; in the folders for data and documentation they are for people. */
export const agentDocuments = `conventions knowledge skills soul identity heartbeat bootstrap tools memory user system rules
  instructions guidelines prompt prompts persona context constitution projectbrief activecontext ai`;

/** There, so do they with documents that have one of these words in their name, or that begin with the name of an agent. */
export const agentWords = "prompt prompts instructions rules llm llms cursorrules windsurfrules clinerules";
export const agentProducts = `agents agent claude gemini qwen codex crush opencode copilot cursor cline roo goose jules devin kiro
  kilo aider windsurf junie grok kimi ai`;

/** Documents in capitals that are known to be for people; others may be an agent's. */
export const plainDocuments = `readme changelog changes contributing license licence copying notice security support
  code_of_conduct code-of-conduct authors contributors maintainers governance history news todo notes roadmap
  architecture design spec specification plan planning report summary results analysis findings faq usage install
  installation quickstart tutorial guide howto api reference glossary upgrading upgrade migration migrating testing
  tests deployment development developing hacking building releasing release release_notes release-notes troubleshooting
  overview introduction index about credits thanks acknowledgements performance benchmarks issues bugs feedback
  requirements proposal rfc adr decision decisions translation translations style styleguide question questions answer answers`;

const sets = {
  extensions: setOf(coveredExtensions.map(([, text]) => text).join(" ")),
  shared: setOf(sharedFormats),
  dataFolders: setOf(dataFolders),
  dataWords: setOf(dataWords),
  names: setOf(coveredNames),
  servedFolders: setOf(servedFolders),
  textWords: setOf(textWords),
  documentFolders: setOf(documentFolders),
  askedFolders: setOf(askedFolders),
  loadedFolders: setOf(loadedFolders),
  agentWords: setOf(agentWords),
  agentProducts: setOf(agentProducts),
  askedNames: setOf(askedNames.map(([, text]) => text).join(" ")),
  toolWords: setOf(toolWords),
  groups: setOf(groupFolders),
  agentFolders: setOf(agentFolders),
  agentDocuments: setOf(agentDocuments),
  plainDocuments: setOf(plainDocuments),
};

export interface EditedFile {
  readonly isFolder?: boolean;
  /** It may be executed and names its interpreter. */
  readonly isProgram?: boolean;
  /** It is taken away, and nothing put in its place. */
  readonly isRemoved?: boolean;
}

/** Why `acceptEdits` does not cover a file of the work, by its path below the working directory; undefined where it does. */
export function steersPrograms(path: string, file: EditedFile = {}): string | undefined {
  const written = withoutWorktree(path.split("/").filter((name) => name !== ""));
  // Names that a file system takes for the same have one text.
  const names = written.map((name: string) => name.normalize("NFKC").toUpperCase().toLowerCase());
  if (written.some((name) => !isPlain(name))) return "its name is not a plain one";
  const folders = file.isFolder === true ? names : names.slice(0, -1);
  const hidden = folders.find((name) => name.startsWith("."));
  if (hidden !== undefined)
    return `${hidden} is a hidden folder, and files in hidden folders can change what programs do`;
  const isAsked = (folder: string): boolean =>
    sets.askedFolders.has(folder) || (file.isFolder !== true && /(?:_plugins|[^.]\.d)$/.test(folder));
  const asked = file.isRemoved === true ? undefined : folders.find(isAsked);
  if (asked !== undefined) return `${asked} contains third-party programs, or files that run automatically`;
  const [name, last] = [names.at(-1), written.at(-1)];
  if (file.isFolder === true || name === undefined || last === undefined) return undefined;
  if (file.isProgram === true) return "it is a program that can be started by its name";
  if (sets.names.has(name)) return undefined;
  if (name.startsWith(".")) return "it is a hidden file, and hidden files can change what programs do";
  return steeringName(name) ?? steeringKind({ name, written: last, folders });
}

function steeringName(name: string): string | undefined {
  const isAsked = sets.askedNames.has(name) || askedPatterns.some(([, pattern]) => pattern.test(name));
  return isAsked ? "files with this name can change what programs or agents do" : undefined;
}

function steeringKind({
  name,
  written,
  folders,
}: {
  readonly name: string;
  readonly written: string;
  readonly folders: readonly string[];
}): string | undefined {
  const at = name.lastIndexOf(".");
  const extension = at <= 0 ? "" : name.slice(at + 1);
  const stem = at <= 0 ? name : name.slice(0, at);
  if (extension === "") return "the purpose of a file without an extension is unknown";
  if (sets.shared.has(extension)) {
    return isData({ extension, stem, folders })
      ? undefined
      : `a .${extension} file outside the folders for data may be configuration`;
  }
  if (!sets.extensions.has(extension)) return `.${extension} files may change what programs do`;
  if (documents.has(extension)) return steeringDocument({ stem, written, folders });
  const [group = "", , ...deeper] = folders;
  const inside = folders.length >= 2 && sets.groups.has(group) ? deeper : folders;
  const [first = ""] = inside;
  if (
    sources.has(extension) &&
    (sets.loadedFolders.has(first) || (first === "project" && extension === "scala"))
  )
    return `tools load what is in ${first} automatically`;
  const tool = folders.find((folder) => folder.includes(".") && steeringName(folder) !== undefined);
  if (tool !== undefined) return `tools load what is in ${tool} automatically`;
  if (inside.length > 0) return undefined;
  const word = wordsOf(stem).find(
    (each) => sets.toolWords.has(each) || toolEndings.some(([, pattern]) => pattern.test(each)),
  );
  // `readFile.ts` is named after what it exports.
  const isExport = /[a-z]File$/.test(written.slice(0, stem.length));
  return word === undefined || isExport
    ? undefined
    : `tools load files with "${word}" in their name automatically`;
}

function isData({
  extension,
  stem,
  folders,
}: {
  readonly extension: string;
  readonly stem: string;
  readonly folders: readonly string[];
}): boolean {
  if (folders.some((folder) => sets.dataFolders.has(folder))) return true;
  const isServed = extension === "json" || extension === "xml";
  if (isServed && folders.some((folder) => sets.servedFolders.has(folder))) return true;
  const words = /^(?:json[5c]?|ya?ml|xml)$/.test(extension) ? sets.dataWords : sets.textWords;
  return wordsOf(stem).some((word) => words.has(word));
}

const sources = setOf(coveredExtensions.find(([what]) => what === "sources")?.[1] ?? "");
const documents = new Set("md mdx markdown txt".split(" "));

/** Agents read documents by their place, or by a name in capitals. */
function steeringDocument({
  stem,
  written,
  folders,
}: {
  readonly stem: string;
  readonly written: string;
  readonly folders: readonly string[];
}): string | undefined {
  const place = folders.find((folder) => sets.agentFolders.has(folder));
  if (place !== undefined) return `documents in ${place} may be instructions for agents`;
  if (folders.some((folder) => sets.documentFolders.has(folder))) return undefined;
  const words = wordsOf(stem);
  const isAgents =
    sets.agentDocuments.has(stem) ||
    words.some((word) => sets.agentWords.has(word)) ||
    sets.agentProducts.has(words[0] ?? "");
  if (isAgents) return "agents read documents of this name";
  const isShouted = /^[A-Z][A-Z0-9_.-]{2,}$/.test(written.slice(0, stem.length));
  const isKnown = sets.plainDocuments.has(stem) || words.some((word) => sets.plainDocuments.has(word));
  return isShouted && !isKnown
    ? "a document with a capitalized name may be instructions for agents"
    : undefined;
}

/** `foo-bar.test` are the words foo, bar and test. */
function wordsOf(stem: string): readonly string[] {
  return stem.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
}

/** A working tree of a child is a project of its own. */
function withoutWorktree(names: readonly string[]): readonly string[] {
  const isTree = names[0] === ".claude" && names[1] === "worktrees" && names.length > 3;
  return isTree ? names.slice(3) : names;
}

/** Of letters, digits and common signs, with none that vanish at the end or look like others. */
function isPlain(name: string): boolean {
  if (
    !/^[\p{L}\p{N}\p{M}_.$@+[(#][\p{L}\p{N}\p{M}\p{Extended_Pictographic}_ .,$@+&'!=#%()[\]{}~-]*$/u.test(
      name,
    )
  )
    return false;
  if (/[. ]$|~\d/.test(name) || name !== name.normalize("NFC")) return false;
  const [stem = ""] = name.split(".").filter((part) => part !== "");
  return !(/[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(stem) && /[A-Za-z]/.test(stem));
}

function setOf(text: string): ReadonlySet<string> {
  return new Set(
    text
      .split(/\s+/)
      .filter((word) => word !== "")
      .map((word) => word.toLowerCase()),
  );
}
