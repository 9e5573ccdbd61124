const safeNames = new Set(
  (
    "NODE_ENV CI FORCE_COLOR NO_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM TERM COLUMNS LINES LANG LANGUAGE TZ DEBUG " +
    "DEBUG_COLORS VERBOSE LOG_LEVEL RUST_LOG RUST_BACKTRACE PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE GOOS GOARCH " +
    "CGO_ENABLED APP_ENV RAILS_ENV RACK_ENV FLASK_ENV PORT NEXT_TELEMETRY_DISABLED DO_NOT_TRACK SOURCE_DATE_EPOCH"
  ).split(" "),
);

/**
 * Names that change which program runs, what it loads, or how the shell reads the rest. A program that sets one is shown
 * to a person. Other names that a program sets get a private name in the judged form, so that none reaches a command.
 */
const steeringNames = new Set(
  (
    "PATH CDPATH IFS ENV HOME PWD OLDPWD SHELL SHELLOPTS PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND GLOBIGNORE EXECIGNORE " +
    "FIGNORE FUNCNEST HISTFILE INPUTRC POSIXLY_CORRECT RANDOM SRANDOM SECONDS LINENO HISTCMD OPTIND OPTERR OPTARG " +
    "MAIL MAILPATH MAILCHECK COMP_WORDBREAKS TMOUT PAGER MANPAGER EDITOR VISUAL BROWSER TERMINFO TERMCAP LOCPATH " +
    "GCONV_PATH NLSPATH HOSTALIASES GLIBC_TUNABLES CLASSPATH MAKEFLAGS MAKEFILES GNUMAKEFLAGS CC CXX LD AR " +
    "KUBECONFIG RSYNC_RSH CVS_RSH TAR_OPTIONS GREP_OPTIONS RIPGREP_CONFIG_PATH TMPDIR ZDOTDIR FPATH AWKPATH " +
    "AWKLIBPATH GZIP XZ_OPT ZSTD_CLEVEL BZIP2 LANGPATH SUDO_ASKPASS WATCHPOLL COPROC MAPFILE REPLY DIRSTACK FUNCNAME " +
    "GROUPS PIPESTATUS UID EUID PPID HOSTNAME HOSTTYPE MACHTYPE OSTYPE EPOCHSECONDS EPOCHREALTIME _"
  ).split(" "),
);
const steeringStart =
  /^(?:LD_|DYLD_|GIT_|BASH|LESS|NODE_|NPM_|npm_|YARN_|PNPM_|PYTHON|PERL|RUBY|GEM_|BUNDLE_|JAVA_|_JAVA|JDK_|MAVEN_|GRADLE_|CARGO|RUST|GO[A-Z]|DOCKER_|SSH_|XDG_|MALLOC_|SYSTEMD_|DELTA_|BAT_|FZF_|LUA_|PHP|TS_NODE|DENO_|BUN_|UV_|PIP_|CURL_|WGET|SSL_|AWS_|MAN|COMP_|HIST|READLINE_|LC_|RETINUE|CLAUDE|ANTHROPIC)/i;
const steeringEnd = /_(?:proxy|opts|options|flags)$/i;

/** Whether a variable before a command changes nothing but what the command prints or how it is built. */
export function isSafeVariable(name: string): boolean {
  return safeNames.has(name) || /^LC_[A-Z]+$/.test(name);
}

/** Whether setting a variable of the shell can change what later commands are or do. */
export function isSteeringVariable(name: string): boolean {
  if (isSafeVariable(name)) return false;
  return steeringNames.has(name) || steeringStart.test(name) || steeringEnd.test(name);
}

const publicNames = new Set("HOME PWD USER LOGNAME SHELL LANG TZ HOSTNAME TRACEPARENT TRACESTATE".split(" "));

/** What bash itself sets, and where programs are looked for: the same for every process of a person. */
const shellNames = new Set(
  (
    "PATH OSTYPE HOSTTYPE MACHTYPE BASH_VERSION SHLVL UID EUID PPID RANDOM SRANDOM SECONDS LINENO EPOCHSECONDS " +
    "EPOCHREALTIME"
  ).split(" "),
);

/** Whether the value of a variable may be shown without a question; others may hold keys. */
export function isShownVariable(name: string): boolean {
  return isPublicVariable(name) || shellNames.has(name);
}

/** Whether a variable before a command is set to a value that steers nothing: `GIT_PAGER=cat`. */
export function isPlainSetting(name: string, value: string): boolean {
  return plainSettings.get(name)?.test(value) === true;
}

const plainSettings: ReadonlyMap<string, RegExp> = new Map([
  ...["GIT_PAGER", "PAGER", "MANPAGER"].map((name): [string, RegExp] => [name, /^(?:cat)?$/]),
  ["GIT_OPTIONAL_LOCKS", /^[01]$/],
  ["GIT_TERMINAL_PROMPT", /^0$/],
]);

/** Whether a variable of the environment steers no program, so that commands that only read get it. */
export function isPublicVariable(name: string): boolean {
  return publicNames.has(name) || isSafeVariable(name);
}

/** The name under which the judged form keeps a variable that the program sets. */
export function privateName(name: string): string {
  return isSafeVariable(name) ? name : `_r_${name}`;
}
