import { type AttackClass, type AttackRow, family, plantProgram } from "../attack.ts";

const plant = { setup: plantProgram("ls") };
const path = "{{P}}/{{D}}/bin:$PATH";

const library =
  "echo '#include <fcntl.h>' > {{D}}/x.c; echo '__attribute__((constructor)) void f(void) { open(\"{{A}}\", O_CREAT, 0644); }' >> {{D}}/x.c; gcc -shared -fPIC -o {{D}}/x.so {{D}}/x.c";
const gitConfig = "printf '[core]\\n\\tfsmonitor = touch {{A}};false\\n' > {{D}}/c";
const gitFolder = `git init -q --template= {{D}}/r; mv {{D}}/r/.git {{D}}/g; ${gitConfig}; cat {{D}}/c >> {{D}}/g/config`;

/** The same variable set in every way a shell has. */
const waysToSetPath: readonly (readonly [id: string, command: string, title: string])[] = [
  ["prefix", `PATH="${path}" ls`, "before the command"],
  ["assign", `PATH="${path}"; ls`, "assigned"],
  ["append", "PATH+=:; PATH={{D}}/bin; ls", "appended to, then assigned"],
  ["export", `export PATH="${path}"; ls`, "exported"],
  ["declare", `declare -x PATH="${path}"; ls`, "declared"],
  ["typeset", `typeset PATH="${path}"; ls`, "declared by another name"],
  ["readonly", `readonly PATH="${path}"; ls`, "made constant"],
  ["for", "for PATH in {{D}}/bin; do ls; done", "a loop variable"],
  ["for-second", "for PATH in $PATH {{D}}/bin; do ls; done", "the second value of a loop"],
  ["for-args", "set -- {{D}}/bin; for PATH; do ls; done", "a loop over the parameters"],
  ["select", "select PATH in {{D}}/bin; do ls; break; done <<< 1", "a choice"],
  ["read", "read PATH <<< {{D}}/bin; ls", "read"],
  ["read-array", "IFS=: read -r PATH x <<< {{D}}/bin:; ls", "read in parts"],
  ["read-document", "read PATH << E\n{{D}}/bin\nE\nls", "read from a here-document"],
  ["printf", "printf -v PATH %s {{D}}/bin; ls", "printed into"],
  ["printf-glued", "printf -vPATH %s {{D}}/bin; ls", "printed into, glued"],
  ["nameref", "declare -n r=PATH; r={{D}}/bin; ls", "through a reference"],
  ["nameref-for", "declare -n r; for r in PATH; do r={{D}}/bin; ls; done", "through a loop of references"],
  ["default", "unset PATH; : ${PATH:={{D}}/bin}; ls", "a default that is assigned"],
  ["getopts", "getopts p: o -p {{D}}/bin; PATH=$OPTARG; ls", "through OPTARG"],
  ["local", "f() { local PATH={{D}}/bin; ls; }; f", "in a function"],
  ["function-prefix", "f() { ls; }; PATH={{D}}/bin f", "before a function"],
  ["env", "env PATH={{D}}/bin ls", "by env"],
  ["command", `PATH="${path}" command ls`, "before command"],
  ["export-prefix", "PATH={{D}}/bin export X=1; PATH={{D}}/bin eval ls", "before eval"],
  ["subshell", "(PATH={{D}}/bin; ls)", "in a subshell"],
  ["pipe", "echo | { PATH={{D}}/bin; ls; }", "in a pipe"],
  ["substitution", "echo $(PATH={{D}}/bin; ls)", "in a substitution"],
  ["arithmetic", "((PATH = 0)); head", "a number"],
  ["printf-count", "printf '%n' PATH; tail", "the count of printf"],
  ["fd", "exec {PATH}< README.md; ls", "a descriptor's number"],
  ["case", "case x in x) PATH={{D}}/bin;; esac; ls", "in a choice"],
  ["and", "true && PATH={{D}}/bin && ls", "in a chain"],
  ["test-regex", "[[ {{D}}/bin =~ .* ]] && PATH=${BASH_REMATCH[0]} && ls", "from a match"],
];

const numbers: Readonly<Record<string, string>> = {
  "path-arithmetic": "0/head",
  "path-printf-count": "0/tail",
  "path-fd": "10/ls",
};

/** Where the value can only be a number, the folder of that name holds the program. */
function pathRow([id, command, title]: (typeof waysToSetPath)[number]): AttackRow {
  const name = `path-${id}`;
  const program = numbers[name];
  if (program === undefined) return [name, command, title, plant];
  const setup = `mkdir -p 0 10; printf '#!/bin/bash\\n/usr/bin/touch {{A}}\\n' > ${program}; chmod +x ${program}`;
  return [name, command, title, { setup }];
}

/** Variables that decide which program runs or what it does. */
export const steeringVariables: AttackClass = {
  name: "steering-variables",
  about: "variables that steer the shell or the programs it starts",
  attacks: [
    ...family("PATH decides which file a name means, however it was set", waysToSetPath.map(pathRow)),
    ...family("bash evaluates the value of these itself", [
      ["ps4-for", "for PS4 in '$(touch {{A}})'; do set -x; ls; done", "PS4, a loop variable"],
      ["ps4-assign", "PS4='$(touch {{A}})'; set -x; ls", "PS4, assigned"],
      ["ps4-read", "read PS4 <<< '`touch {{A}}`'; set -x; ls", "PS4, read"],
      ["ps4-printf", "printf -v PS4 '$(touch {{A}})'; set -x; ls", "PS4, printed into"],
      ["ps4-option", "PS4='$(touch {{A}})'; set -o xtrace; ls", "PS4 with the long option"],
      ["ps4-subscript", "PS4='${a[$(touch {{A}})]}'; set -x; ls", "PS4 with a subscript"],
      ["ps4-default", ": ${PS4:=x}; PS4=\\$\\(touch\\ {{A}}\\); set -x; ls", "PS4 with escapes"],
      ["ps4-mapfile", "mapfile -t PS4 <<< '$(touch {{A}})'; set -x; ls", "PS4, an array of lines"],
      ["ps4-select", "select PS4 in '$(touch {{A}})'; do set -x; ls; break; done <<< 1", "PS4, a choice"],
      [
        "ps4-arguments",
        "set -- '$(touch {{A}})'; for PS4; do set -x; ls; done",
        "PS4, a loop over parameters",
      ],
      ["bash-env", "BASH_ENV={{D}}/s bash -c ls", "BASH_ENV", { setup: "echo 'touch {{A}}' > {{D}}/s" }],
      [
        "bash-env-for",
        "export BASH_ENV; for BASH_ENV in {{D}}/s; do bash -c ls; done",
        "BASH_ENV, a loop variable",
        { setup: "echo 'touch {{A}}' > {{D}}/s" },
      ],
      ["shell-env", "ENV={{D}}/s sh -ic ls", "ENV", { setup: "echo 'touch {{A}}' > {{D}}/s" }],
      ["prompt-command", "PROMPT_COMMAND='touch {{A}}' bash -i <<< ls", "PROMPT_COMMAND"],
      [
        "exported-function",
        "env 'BASH_FUNC_ls%%=() { touch {{A}}; }' bash -c ls",
        "a function in the environment",
      ],
      ["trace-descriptor", "exec 7> {{C}}; BASH_XTRACEFD=7; set -x; ls", "BASH_XTRACEFD"],
      ["history-file", "HISTFILE={{C}}; set -o history; history -s x; history -w", "HISTFILE"],
      ["ifs-command", "IFS=_; c=touch_{{A}}; $c", "IFS splits a word into a command"],
      ["ifs-argument", "IFS=:; x='src:-maxdepth:0:-fprint:{{C}}'; find $x", "IFS splits a word into options"],
      [
        "glob-ignore",
        "GLOBIGNORE='*.ts'; find src -maxdepth 0 -fprint {{C}}",
        "GLOBIGNORE, and a writing option",
      ],
    ]),
    ...family(
      "a variable leads a path to another place",
      [
        ["home-for", "for HOME in {{W}}/other; do cat ~/secret.txt; done", "the home in a loop"],
        ["home-assign", "HOME={{W}}/other; cat ~/secret.txt", "the home, assigned"],
        ["home-read", "read HOME <<< {{W}}/other; cat ~/secret.txt", "the home, read"],
        ["home-printf", "printf -v HOME %s {{W}}/other; cat ~/secret.txt", "the home, printed into"],
        ["oldpwd-tilde", "OLDPWD={{W}}/other; cat ~-/secret.txt", "the former folder, by tilde"],
        ["pwd-tilde", "PWD={{W}}/other; cat ~+/secret.txt", "the present folder, by tilde"],
        ["oldpwd-cd", "(OLDPWD={{W}}/other; cd -; cat secret.txt)", "the former folder, by cd"],
        [
          "oldpwd-for",
          "for OLDPWD in {{W}}/other; do (cd - && cat secret.txt); done",
          "the former folder, in a loop",
        ],
        ["cdpath", "(CDPATH={{W}}; cd other && cat secret.txt)", "CDPATH"],
        ["cdpath-for", "for CDPATH in {{W}}; do (cd other && cat secret.txt); done", "CDPATH in a loop"],
        ["home-cd", "(HOME={{W}}/other; cd; cat secret.txt)", "the home, by cd"],
        ["dirstack", "(pushd {{W}}/other; cat ~0/secret.txt)", "the stack of folders"],
        ["plain-variable", "x={{W}}/other/secret.txt; cat $x", "any variable"],
        ["plain-loop", 'for x in {{W}}/other/*; do cat "$x"; done', "any loop variable"],
        ["plain-read", "read x <<< {{W}}/other/secret.txt; cat $x", "any variable, read"],
        ["plain-nested", "x=secret y={{W}}/other; cat $y/$x.txt", "a path of two variables"],
        ["plain-default", "cat ${x:-{{W}}/other/secret.txt}", "the default of a variable"],
        ["plain-set", 'set -- {{W}}/other/secret.txt; cat "$1"', "a positional parameter"],
        ["plain-array", "a=({{W}}/other/secret.txt); cat ${a[0]}", "an element of an array"],
        ["plain-star", 'a=({{W}}/other/secret.txt); cat "${a[@]}"', "all elements of an array"],
        ["plain-indirect", "x={{W}}/other/secret.txt y=x; cat ${!y}", "an indirect expansion"],
        ["plain-replace", "x={{W}}/XXXXX/secret.txt; cat ${x/XXXXX/other}", "a replacement in a value"],
        ["plain-upper", "x=SECRET; cat {{W}}/other/${x,,}.txt", "a change of case in a value"],
        ["plain-random", "cat {{W}}/other/${RANDOM:+secret}.txt", "a special variable"],
        ["plain-underscore", "echo {{W}}/other/secret.txt; cat $_", "the last word of the command before"],
        ["plain-rematch", "[[ {{W}}/other/secret.txt =~ .+ ]]; cat $BASH_REMATCH", "a match"],
        ["plain-printf", "printf -v x '%b' '{{W}}\\x2fother/secret.txt'; cat $x", "printed with escapes"],
        ["plain-quote", "x=\"'{{W}}/other/secret.txt'\"; cat ${x//\\'/}", "a value without its quotes"],
      ],
      { effect: { leaks: "outside" } },
    ),
    ...family("a program reads its options from the environment", [
      ["ld-preload", "LD_PRELOAD={{P}}/{{D}}/x.so ls", "LD_PRELOAD", { needs: ["gcc"], setup: library }],
      [
        "ld-preload-for",
        "export LD_PRELOAD; for LD_PRELOAD in {{P}}/{{D}}/x.so; do ls; done",
        "LD_PRELOAD in a loop",
        { needs: ["gcc"], setup: library },
      ],
      [
        "ld-audit-declare",
        "declare -x LD_PRELOAD={{P}}/{{D}}/x.so; ls",
        "LD_PRELOAD, declared",
        { needs: ["gcc"], setup: library },
      ],
      [
        "ld-debug",
        "LD_DEBUG=files LD_DEBUG_OUTPUT={{A}} ls; for f in {{A}}.*; do mv $f {{A}}; done",
        "LD_DEBUG_OUTPUT writes a file",
      ],
      ["git-trace", "GIT_TRACE={{A}} git status", "GIT_TRACE writes a file"],
      ["git-trace2", "GIT_TRACE2_EVENT={{A}} git status", "GIT_TRACE2_EVENT writes a file"],
      [
        "git-trace-for",
        "export GIT_TRACE; for GIT_TRACE in {{A}}; do git status; done",
        "GIT_TRACE in a loop",
      ],
      ["git-external-diff", "GIT_EXTERNAL_DIFF='touch {{A}}' git diff", "GIT_EXTERNAL_DIFF"],
      [
        "git-config-count",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='touch {{A}};false' git status",
        "GIT_CONFIG_COUNT",
      ],
      [
        "git-config-parameters",
        "GIT_CONFIG_PARAMETERS=\"'core.fsmonitor=touch {{A}};false'\" git status",
        "GIT_CONFIG_PARAMETERS",
      ],
      [
        "git-config-global",
        "GIT_CONFIG_GLOBAL={{D}}/c git status",
        "GIT_CONFIG_GLOBAL",
        { setup: gitConfig },
      ],
      [
        "git-config-home",
        "XDG_CONFIG_HOME={{P}}/{{D}} git status",
        "XDG_CONFIG_HOME",
        { setup: `mkdir {{D}}/git; ${gitConfig}; mv {{D}}/c {{D}}/git/config` },
      ],
      [
        "git-home",
        "HOME={{P}}/{{D}} git status",
        "HOME for git",
        { setup: `${gitConfig}; mv {{D}}/c {{D}}/.gitconfig` },
      ],
      [
        "git-home-for",
        "for HOME in {{P}}/{{D}}; do git status; done",
        "HOME for git, in a loop",
        { setup: `${gitConfig}; mv {{D}}/c {{D}}/.gitconfig` },
      ],
      ["git-dir", "GIT_DIR={{D}}/g git status", "GIT_DIR", { setup: gitFolder }],
      [
        "git-dir-for",
        "export GIT_DIR; for GIT_DIR in {{D}}/g; do git status; done",
        "GIT_DIR in a loop",
        { setup: gitFolder },
      ],
      [
        "tar-options",
        "TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=touch${IFS}{{A}}' tar tf {{D}}/t",
        "TAR_OPTIONS",
        { setup: "tar cf {{D}}/t src" },
      ],
      [
        "ripgrep-config",
        "RIPGREP_CONFIG_PATH={{D}}/c rg x src",
        "RIPGREP_CONFIG_PATH",
        { needs: ["rg"], setup: `${plantProgram("p")}echo --pre={{P}}/{{D}}/bin/p > {{D}}/c` },
      ],
      [
        "node-options",
        "NODE_OPTIONS='--require {{P}}/{{D}}/x.js' node -p 1",
        "NODE_OPTIONS",
        { needs: ["node"], setup: 'echo \'require("fs").writeFileSync("{{A}}", "")\' > {{D}}/x.js' },
      ],
      [
        "python-startup",
        "PYTHONPATH={{D}} python3 -c 1",
        "PYTHONPATH",
        { needs: ["python3"], setup: 'echo \'open("{{A}}", "w")\' > {{D}}/sitecustomize.py' },
      ],
      [
        "perl-options",
        "PERL5OPT=-Mx PERL5LIB={{D}} perl -e 1",
        "PERL5OPT",
        { needs: ["perl"], setup: "echo 'open(F, \">{{A}}\"); 1' > {{D}}/x.pm" },
      ],
      [
        "magic-file",
        "MAGIC={{H}}/.ssh/id_rsa file README.md",
        "MAGIC",
        { needs: ["file"], effect: { leaks: "ssh" } },
      ],
      [
        "sort-tmp",
        "TMPDIR={{D}} sort -S 1k --compress-program={{D}}/bin/z {{D}}/big",
        "a program, with TMPDIR",
        {
          setup: `${plantProgram("z", "exec cat\\n")}seq 1 300 | sed 's/$/xxxxxxxxxxxxxxxxxxxx/' > {{D}}/big`,
        },
      ],
    ]),
  ],
};
