import type { CommandSpec } from "./shell-command-spec.ts";

/** Commands that reach other machines, with the options by which they write, read other files or start programs. */
export const networkCommands: readonly (readonly [string, CommandSpec])[] = [
  [
    "curl",
    {
      options:
        "o:> output:> output-dir:> O! remote-name! remote-name-all! J! remote-header-name! K:<! config:<! D:> " +
        "dump-header:> c:> cookie-jar:> trace:> trace-ascii:> stderr:> libcurl:> etag-save:> etag-compare:< hsts:> " +
        "alt-svc:> T:< upload-file:< d:@ data:@ data-ascii:@ data-binary:@ data-urlencode:@ data-raw: json:@ F:@ " +
        "form:@ form-string: H:@ header:@ w:@ write-out:@ b: cookie: E:< cert:< key:< cacert:< capath:< netrc-file:< " +
        "A: e: u: X: x: m: r: U: C: Y: y: z: t: Q: P: variable:@ user: user-agent: referer: request: proxy: url: " +
        "max-time: connect-timeout: retry: retry-delay: limit-rate: unix-socket:! abstract-unix-socket:! engine:! " +
        "s silent S L location f fail k i I v",
      operands: "none",
      caution: ({ operands, options }) =>
        [...operands, ...options.flatMap(({ name, value }) => (name === "url" && value ? [value] : []))].some(
          ({ text }) => /^\s*(?:file|scp|sftp|dict|gopher|ldaps?|tftp|smbs?|telnet):/i.test(text),
        )
          ? "curl reads files or speaks other protocols with such an address"
          : undefined,
    },
  ],
  [
    "wget",
    {
      options:
        "O:> output-document:> o:> output-file:> a:> append-output:> P:> directory-prefix:> i:< input-file:< e:! " +
        "execute:! config:! use-askpass:! post-file:< body-file:< save-cookies:> load-cookies:< warc-file:> " +
        "rejected-log:> hsts-file:> t: T: w: Q: U: l: A: R: D: I: X: B: q quiet post-data: body-data: header: " +
        "user: password: method: tries: timeout: user-agent: S x r m k p N c",
      operands: "none",
      landsHere: "O output-document P directory-prefix",
    },
  ],
  [
    "rsync",
    {
      options:
        "e:! rsh:! rsync-path:! M:! remote-option:! files-from:< exclude-from:< include-from:< password-file:< " +
        "log-file:> write-batch:> only-write-batch:> read-batch:< T:> temp-dir:> backup-dir:> partial-dir:> " +
        "remove-source-files! delete! del! f: filter: exclude: include: B: a v r z n P",
      operands: "copy",
      below: true,
    },
  ],
  ["scp", { options: "S:! o:! F:! D:! J:! i:< P: l: c: X:", operands: "copy" }],
  ["sftp", { options: "S:! o:! F:! D:! J:! b:<! i:< P: l: c: B: R:", operands: "none" }],
  [
    "ssh",
    {
      options: "o:! F:! E:> J:! S:! W: L: R: D: w: I:! i:< l: p: b: c: e: m: B: O: Q:",
      operands: "none",
    },
  ],
];
