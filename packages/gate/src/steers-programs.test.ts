import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  agentDocuments,
  agentFolders,
  agentProducts,
  agentWords,
  askedFolders,
  askedNames,
  askedPatterns,
  coveredExtensions,
  coveredNames,
  dataFolders,
  dataWords,
  loadedFolders,
  plainDocuments,
  servedFolders,
  sharedFormats,
  steersPrograms,
  textWords,
  toolEndings,
  toolWords,
} from "./steers-programs.ts";

/** Files of real projects that some program or agent obeys by itself, or that say what is built, tested and deployed. */
const steering: Readonly<Record<string, string>> = {
  "continuous integration": `.github/workflows/ci.yml .github/actions/build/action.yml .github/dependabot.yml
    .gitlab-ci.yml .gitlab/ci/build.yml .circleci/config.yml .travis.yml .drone.yml .woodpecker.yml
    .woodpecker/build.yaml .buildkite/pipeline.yml .buildkite/hooks/command .semaphore/semaphore.yml .cirrus.yml
    .appveyor.yml appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml Jenkinsfile Jenkinsfile.groovy
    ci/Jenkinsfile cloudbuild.yaml buildspec.yml appspec.yml codefresh.yml .builds/main.yml .tekton/push.yaml
    .forgejo/workflows/x.yml .gitea/workflows/x.yaml .harness/pipeline.yaml .screwdriver.yaml screwdriver.yaml
    wercker.yml codemagic.yaml bitrise.yml .ci/run.sh ci/deploy.sh concourse/pipeline.yml .dagger/main.go dagger.json
    Earthfile Taskfile.yml shippable.yml .vsts-ci.yml .teamcity/settings.kts .argo/workflow.yaml action.yml
    .github/CODEOWNERS CODEOWNERS .mergify.yml .kodiak.toml renovate.json renovate.json5 .renovaterc
    .github/renovate.json5 .sourcery.yaml .deepsource.toml .codeclimate.yml codecov.yml .coveralls.yml`,
  "git and hooks": `.gitattributes .gitmodules .gitconfig .githooks/pre-commit .husky/pre-commit .husky/_/husky.sh husky.config.js
    .lefthook.yml lefthook.yml lefthook-local.yml .pre-commit-config.yaml .overcommit.yml .lintstagedrc
    .lintstagedrc.json lint-staged.config.mjs commitlint.config.js .commitlintrc.json .czrc .cz.toml tools/hooks/pre-commit
    hooks/post-checkout scripts/git-hooks/commit-msg simple-git-hooks.cjs .simple-git-hooks.json .git-hooks/x
    .gitleaks.toml .gitmessage .mailcap .hgrc .jj/config.toml .arcconfig .gitreview`,
  editors: `.vscode/settings.json .vscode/tasks.json .vscode/launch.json .idea/workspace.xml .zed/settings.json .zed/tasks.json
    .fleet/run.json .nova/Configuration.json app.code-workspace .sublime-project x.sublime-project .vimrc .nvim.lua .exrc
    .lvimrc .dir-locals.el .projectile .editorconfig-checker.json .vs/launch.vs.json .settings/org.eclipse.jdt.prefs
    .project .classpath .nvimrc .neoconf.json .helix/config.toml .helix/languages.toml .kakrc .kateproject .emacs
    .devcontainer/devcontainer.json .devcontainer.json devcontainer/devcontainer.json .gitpod.yml .gitpod.Dockerfile
    .replit replit.nix .idx/dev.nix .stackblitzrc .codesandbox/tasks.json .cnb.yml Session.vim`,
  "shells, version managers and environments": `.envrc .envrc.local .env .env.local .env.production .tool-versions .node-version
    .nvmrc .python-version .ruby-version .ruby-gemset .java-version .sdkmanrc .terraform-version .go-version .mise.toml
    mise.toml .mise/config.toml .config/mise.toml .rtx.toml .rvmrc .autoenv .autoenv.zsh .bashrc .zshrc .profile
    .bash_aliases .inputrc .zshenv .tmux.conf flake.nix flake.lock shell.nix default.nix devenv.nix devenv.yaml
    .devenv.flake.nix devbox.json pixi.toml .flox/env/manifest.toml environment.yml .direnvrc .dockerenv .xprofile .pam_environment
    .python_startup.py .pythonrc rust-toolchain rust-toolchain.toml .swift-version .nvm/x volta.json`,
  "package managers": `package.json package-lock.json npm-shrinkwrap.json .npmrc .yarnrc .yarnrc.yml yarn.lock pnpm-lock.yaml
    pnpm-workspace.yaml .pnpmfile.cjs pnpmfile.js bun.lockb bun.lock bunfig.toml deno.json deno.jsonc deno.lock jsr.json
    import_map.json Gemfile Gemfile.lock gems.rb app.gemspec .bundle/config Cargo.toml Cargo.lock .cargo/config.toml go.mod
    go.sum go.work pyproject.toml setup.py setup.cfg requirements.txt requirements-dev.txt dev-requirements.txt
    requirements/base.txt constraints.txt Pipfile Pipfile.lock poetry.lock poetry.toml uv.lock uv.toml pdm.lock tox.ini pip.conf
    .pypirc .condarc MANIFEST.in composer.json composer.lock auth.json pom.xml build.gradle build.gradle.kts settings.gradle
    gradle.properties gradlew gradlew.bat gradle/wrapper/gradle-wrapper.properties .mvn/extensions.xml mvnw build.sbt
    project/plugins.sbt project/build.properties mix.exs mix.lock rebar.config stack.yaml cabal.project package.yaml dune
    dune-project x.opam esy.json elm.json Package.swift Package.resolved Podfile Podfile.lock Cartfile pubspec.yaml
    pubspec.lock deps.edn project.clj shadow-cljs.edn bb.edn nuget.config packages.config Directory.Build.props
    Directory.Build.targets global.json app.csproj app.sln paket.dependencies vcpkg.json conanfile.txt conanfile.py
    Project.toml Manifest.toml dub.json shard.yml app.nimble Berksfile Brewfile
    Aptfile apt.txt packages.txt runtime.txt node_modules/x/index.js vendor/autoload.php bower.json .bowerrc .meteor/packages
    venv/bin/activate .venv/lib/x.py site-packages/x.pth lerna.json rush.json .yarn/releases/yarn.cjs .snyk .nsprc`,
  "builds and tasks": `Makefile makefile GNUmakefile Makefile.am common.mk rules.make CMakeLists.txt CMakePresets.json toolchain.cmake
    meson.build meson_options.txt BUILD BUILD.bazel WORKSPACE MODULE.bazel .bazelrc defs.bzl BUCK .buckconfig pants.toml
    SConstruct wscript configure configure.ac build.ninja build.rs build.zig build.xml build.py build.sh Rakefile lib/x.rake
    Justfile justfile .justfile Taskfile.dist.yaml mage.go magefile.go gulpfile.js gulpfile.babel.js Gruntfile.js
    Jakefile Cakefile webpack.config.js webpack.prod.js rollup.config.mjs vite.config.ts vitest.workspace.ts next.config.js
    nuxt.config.ts astro.config.mjs svelte.config.js remix.config.js gatsby-config.js gatsby-node.js angular.json nx.json
    turbo.json project.json workspace.json babel.config.js .babelrc .swcrc tsconfig.json tsconfig.build.json jsconfig.json
    tsup.config.ts esbuild.config.mjs postcss.config.js tailwind.config.ts metro.config.js snowpack.config.js .parcelrc
    ember-cli-build.js quasar.config.js vue.config.js craco.config.js electron-builder.yml forge.config.js plopfile.js
    dodo.py tasks.py fabfile.py noxfile.py Snakefile nextflow.config build.boot build.sc build.mill Procfile Procfile.dev
    nodemon.json pm2.json ecosystem.config.js process.yml supervisord.conf foreman.env bsconfig.json rescript.json
    codegen.ts codegen.yml buf.gen.yaml sqlc.yaml orval.config.ts openapitools.json graphql.config.js .graphqlrc
    xmake.lua premake5.lua CMakeUserPresets.json Tupfile ant.properties app.pro x.vcxproj hardhat.config.ts truffle-config.js
    foundry.toml Move.toml Anchor.toml Scarb.toml brownie-config.yaml docs/conf.py mkdocs.yml docs/_config.yml book.toml
    _quarto.yml gradle/libs.versions.toml install.sh setup.sh postinstall.js scripts/x.ps1 run.bat run.cmd`,
  "tests and checks": `conftest.py tests/conftest.py pytest.ini .coveragerc jest.config.js jest.setup.ts vitest.config.ts
    playwright.config.ts cypress.config.ts cypress.json karma.conf.js wdio.conf.ts nightwatch.conf.js .mocharc.json .mocharc.js
    .nycrc .taprc ava.config.js cucumber.js codecept.conf.js .rspec phpunit.xml phpunit.xml.dist behat.yml psalm.xml
    phpstan.neon rector.php .php-cs-fixer.php .eslintrc .eslintrc.js eslint.config.mjs .prettierrc prettier.config.js
    .prettierrc.toml .stylelintrc stylelint.config.js biome.json dprint.json .oxlintrc.json .flake8 .pylintrc mypy.ini
    pyrightconfig.json ruff.toml .ruff.toml .rubocop.yml .golangci.yml .clang-tidy .clang-format .swiftlint.yml
    clippy.toml detekt.yml checkstyle.xml sonar-project.properties .hadolint.yaml .yamllint .markdownlint.json
    .remarkrc.js knip.json .depcheckrc danger/dangerfile.ts dangerfile.ts Dangerfile .size-limit.js stryker.conf.json
    .infection.json locustfile.py artillery.yml k6.config.js .storybook/main.ts test/mocha.opts`,
  "containers and deployment": `Dockerfile Dockerfile.dev api.Dockerfile Containerfile docker-compose.yml docker-compose.override.yml
    compose.yaml docker-bake.hcl Vagrantfile skaffold.yaml Tiltfile devspace.yaml garden.yml helmfile.yaml
    chart/Chart.yaml chart/values.yaml k8s/deployment.yaml kustomization.yaml serverless.yml template.yaml samconfig.toml
    cdk.json sst.config.ts Pulumi.yaml main.tf terraform.tfvars .terraformrc terragrunt.hcl packer.pkr.hcl ansible.cfg
    playbook.yml inventory/hosts ansible/site.yml vercel.json now.json netlify.toml firebase.json .firebaserc app.yaml app.json
    eas.json fly.toml render.yaml railway.toml wrangler.toml wrangler.jsonc heroku.yml .platform.app.yaml .ebextensions/x.config
    nginx.conf Caddyfile haproxy.cfg traefik.yml prometheus.yml x.service x.timer com.x.plist x.desktop crontab
    cloud-init.yaml user-data nomad.hcl captain-definition .htaccess web.config .dockerignore.sh public/_redirects
    copilot/api/manifest.yml okteto.yml devfile.yaml zeabur.json deno.deploy.ts capfile Capfile deploy.rb`,
  "instructions and tools of agents": `AGENTS.md agents.md Agents.MD AGENT.md CLAUDE.md CLAUDE.local.md packages/api/CLAUDE.md docs/AGENTS.md
    GEMINI.md QWEN.md CODEX.md CRUSH.md WARP.md OPENCODE.md COPILOT.md JULES.md DEVIN.md REPLIT.md replit.md AMP.md GOOSE.md
    .goosehints .cursorrules .cursor/rules/x.mdc .cursor/hooks.json .cursor/mcp.json .cursor/environment.json rules/x.mdc
    .windsurfrules .windsurf/rules/x.md .windsurf/workflows/x.md .clinerules .clinerules/x.md .roorules .roo/rules/x.md
    .roomodes .kilocode/rules/x.md .kilocodemodes .github/copilot-instructions.md .github/instructions/x.instructions.md
    x.instructions.md review.prompt.md plan.chatmode.md tester.agent.md .github/prompts/x.prompt.md .github/agents/x.agent.md
    .claude/settings.json .claude/agents/x.md .claude/skills/x/SKILL.md .claude/commands/x.md skills/x/SKILL.md SKILL.md
    agents/reviewer.md commands/deploy.md .mcp.json mcp.json .aider.conf.yml CONVENTIONS.md .continue/config.yaml
    .continuerc.json .codex/config.toml .gemini/settings.json gemini-extension.json .qwen/settings.json .opencode/agent/x.md
    opencode.json opencode.jsonc crush.json .crush.json .kiro/steering/x.md .kiro/hooks/x.kiro.hook .junie/guidelines.md
    .augment/rules/x.md .augment-guidelines .amazonq/rules/x.md .trae/rules/project_rules.md .rules .openhands/microagents/repo.md
    .openhands_instructions .sourcegraph/x.rule.md .tabnine/guidelines/x.md .factory/droids/x.md .agents/skills/x/SKILL.md
    .agent/rules/x.md .codeium/instructions.md .void/x .zencoder/rules/x.md .ona/automations.yaml .phoenix/x.md
    .retinue/settings.json SOUL.md HEARTBEAT.md TOOLS.md MEMORY.md IDENTITY.md knowledge.md GUIDELINES.md RULES.md
    .claude-plugin/plugin.json hooks/hooks.json marketplace.json .pr_agent.toml .coderabbit.yaml greptile.json .cody/x.json
    .github/chatmodes/x.md memory-bank/activeContext.md llm-rules.mdc FOOBAR.md`,
  "sources and data that tools find by themselves": `sitecustomize.py lib/usercustomize.py pip.py pytest.py toxfile.py celeryconfig.py
    hubconf.py pythonrc.py gdbinit.py libx.so-gdb.py notebooks/jupyter_server_config.py site_scons/site_init.py testem.js
    Brocfile.js wallaby.js fuse.js keystone.ts sanity.cli.ts gulpfile.js/index.js gulpfile.babel.js/index.js
    src/setupProxy.js Assetfile.js RoboFile.php castor.php phinx.php Envoy.blade.php config/deploy.rb config/puma.rb
    config/initializers/x.rb config/config.exs packages/api/config/x.js Thorfile.rb Steepfile.rb hooks/post_gen_project.py
    hooks/pre-commit.sh profiles.clj data_readers.clj project/Build.scala buildSrc/src/main/kotlin/x.kt
    build-logic/src/x.kt Tupfile.lua Tuprules.lua Project.swift Tuist/Config.swift Package@swift-5.9.swift
    renv/activate.R packrat/init.R _targets.R magefiles/x.go filter_plugins/f.py alembic/env.py library/mod.py
    docker-entrypoint-initdb.d/x.sh docker-entrypoint-initdb.d/x.sql skills/x/scripts/y.py autoload.php startup.py
    test/jest-e2e.json spec/support/jasmine.json spec/support/jasmine.mjs e2e/config.json src/main/resources/logback.xml
    src/main/resources/application.yml src/App/Properties/launchSettings.json src/local.settings.json test/molecule.yml
    docs/config.toml docs/hugo.yaml public/php.ini public/user.ini static/admin/config.yml src/alembic.ini
    inventory.yml inventory.ini data/mcp_servers.json data/dvc.yaml docker-compose-example.yml Taskfile-example.yml
    events.toml log.properties dump.ini deps.txt reqs.txt dev-deps.txt crontab.txt`,
  "documents that agents read": `llms.txt llms-full.txt ai.md context.md AGENTS.override.md agents.local.md GEMINI.local.md
    claude-notes.md system-prompt.txt system_prompt.md ai-instructions.md copilot.txt cursorrules.md windsurfrules.md
    clinerules.txt coding-rules.md output-styles/x.md personas/x.md`,
  "names that are taken for others": `PACKAGE.JSON Package.json MAKEFILE Makefile. package.json. .GITHUB/workflows/x.yml
    ﹒github/x.yml pacKage.json maKefile ｐackage.json packag~1.jso
    rеadme.md __proto__ constructor`,
  "what is not known":
    "notes data run a.out lib.so x.wasm x.jar x.pyc archive.zip a.bin x.exe x.lnk x.config .hidden .hidden/a.ts",
};

/** What people edit all day. */
const covered = `src/index.ts src/app/page.tsx src/[id]/page.tsx app/(group)/page.tsx src/routes/+page.svelte app/$id.tsx index.js main.py
  hello.py server.go lib.rs Main.java App.kt program.cs Program.fs view.vue a.test.ts a.spec.js tests/test_a.py spec/a_spec.rb
  test/fixtures/data.json src/data.json src/config.ts src/setup.ts src/hooks/useThing.ts src/tasks/run.ts src/build/index.ts
  server/config.ts packages/api/src/config.ts packages/api/index.ts components/Button.tsx styles/main.css a.scss
  index.html public/index.html public/manifest.json README.md README CHANGELOG.md CONTRIBUTING.md LICENSE docs/guide.md
  docs/API.md docs/TOOLS.md docs/memory.md docs/skills.md notes.md notes.txt report.txt result.json results.json data.json
  output.json out.json user-data.yaml locales/en.json i18n/de.yml src/messages_en.properties data/a.csv data/x.toml
  migrations/001.sql schema.graphql api.proto a.svg logo.png font.woff2 notebook.ipynb script.sh scripts/run.sh scripts/a.py
  .gitignore packages/a/.gitignore .dockerignore .prettierignore .editorconfig .env.example .gitkeep
  .claude/worktrees/child/src/a.ts examples/a.ts benches/x.rs cmd/app/main.go internal/a_test.go PLAN.md DESIGN.md
  REPORT.md SPEC.md TODO.md 文档.md данные.csv src/é.ts profile.ts userProfile.tsx src/file.ts readFile.ts pipeline.ts
  src/workflows/order.ts src/pods/a.ts src/env/schema.ts src/agents/run.ts src/rules/match.ts src/commands/add.ts
  src/prompts/render.ts lock.ts src/lock.ts templates/mail.ejs views/a.hbs docs/cursor-pagination.md docs/prompts.md
  src/schema.json docs/openapi.yaml tests/expected.json src/countries.json public/sitemap.xml logfile.py types.d.ts
  src/config/index.ts app/hooks/use-thing.ts src/startup.ts packages/api/src/config/index.ts app.py server.js manage.py`;

describe("what accepting edits covers", () => {
  const rows = Object.entries(steering).flatMap(([kind, names]) =>
    names.split(/\s+/).map((name) => [kind, name] as const),
  );

  test.each(rows)("%s is asked about [PRM-10]: %s", (_, path) => {
    expect(steersPrograms(path)).toBeTypeOf("string");
  });

  test.each(covered.split(/\s+/))("is covered [PRM-10]: %s", (path) => {
    expect(steersPrograms(path)).toBeUndefined();
  });

  test("a name that ends in a blank, or holds what shows nothing, is asked about [PRM-10]", () => {
    for (const path of [
      "a.ts ",
      "src /a.ts",
      "a\u200b.ts",
      "a.ts\u202e",
      "a.ts:x",
      "a\\b.ts",
      "-a.ts",
      "a\n.ts",
    ])
      expect(steersPrograms(path)).toBeTypeOf("string");
  });

  test("folders are covered unless they are hidden or hold programs of others [PRM-10]", () => {
    for (const path of ["dist", "dist/sub", "a.d", "Makefile"])
      expect(steersPrograms(path, { isFolder: true })).toBeUndefined();
    for (const path of [".github", "a/.husky", "node_modules", "NODE_MODULES/x", "vendor"])
      expect(steersPrograms(path, { isFolder: true })).toBeTypeOf("string");
    expect(steersPrograms("node_modules", { isFolder: true, isRemoved: true })).toBeUndefined();
  });

  test("a program that can be started by its name is asked about [PRM-10]", () => {
    expect(steersPrograms("scripts/run.sh", { isProgram: true })).toBeTypeOf("string");
  });

  test("there are more than 600 names to be asked about [PRM-10]", () => {
    expect(rows.length).toBeGreaterThan(600);
  });

  test("the page shows the tables as they are [PRM-10]", () => {
    const page = readFileSync("docs/accepted-edits.md", "utf8").replace(/\s+/g, " ");
    const listed = (text: string): string =>
      text
        .trim()
        .split(/\s+/)
        .map((word) => `\`${word}\``)
        .join(" ");
    const shown = [
      ...coveredExtensions.map(([what, extensions]) => `| ${what} | ${listed(extensions)} |`),
      ...askedNames.map(([what, names]) => `| ${what} | ${listed(names)} |`),
      ...[sharedFormats, dataFolders, dataWords, textWords, coveredNames, askedFolders].map(listed),
      ...[loadedFolders, toolWords, agentFolders, agentDocuments, agentWords].map(listed),
      ...[agentProducts, plainDocuments].map(listed),
      listed(servedFolders).replace(" ", " and "),
      ...toolEndings.map(([text]) => text),
      ...askedPatterns.map(([text]) => text),
    ];
    for (const text of shown) expect(page).toContain(text);
  });
});
