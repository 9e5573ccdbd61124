/**
 * Variables that decide which code a program loads or where configuration comes from. A repository's settings never
 * set them, however much the folder is trusted: they would reach every command, not only the repository's own.
 */
export function isForbiddenToRepositories(variable: string): boolean {
  const name = variable.toUpperCase();
  if (stripControlCharacters.some((pattern) => pattern.test(name))) return false;
  return names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

const names: ReadonlySet<string> = new Set(
  `PATH PATHEXT HOME USERPROFILE XDG_CONFIG_HOME SHELL COMSPEC SHELLOPTS BASHOPTS BASH_ENV ENV ZDOTDIR PROMPT_COMMAND PS4 IFS
  CDPATH FPATH EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER SSH_ASKPASS SUDO_ASKPASS
  NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED NODE_REPL_EXTERNAL_MODULE
  PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONBREAKPOINT PYTHONINSPECT
  RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE PERL5OPT PERL5LIB PERLLIB PERL5DB
  JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
  PHP_INI_SCAN_DIR PHPRC LUA_PATH LUA_CPATH LUA_INIT RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_HOME
  GOFLAGS GOENV MAKEFLAGS MAKEFILES GCONV_PATH HOSTALIASES LOCPATH NLSPATH
  RIPGREP_CONFIG_PATH CURL_HOME WGETRC OPENSSL_CONF SSL_CERT_FILE SSL_CERT_DIR
  CLAUDE_CONFIG_DIR CLAUDE_CODE_TMPDIR CLAUDE_CODE_PROJECT_DIR_NAME TMPDIR TEMP TMP`.split(/\s+/),
);

const prefixes = ["LD_", "DYLD_", "GIT_", "BASH_FUNC_", "NPM_CONFIG_", "COR_", "CORECLR_"] as const;

const stripControlCharacters = [/^GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)$/, /^GIT_TERMINAL_PROMPT$/] as const;
