import type { Judgement, UsedPath, Word } from "../model.ts";
import {
  hasOption,
  optionTable,
  plainWord,
  type ScannedWords,
  scanOptions,
  sliceWord,
  valuesOf,
} from "../word.ts";
import { judgement, optionPaths, optionRisk, type ProgramSpec, used } from "./judgement.ts";

/** Programs that reach other machines, with the options by which they write, read other files or start programs. */
export const networkPrograms: readonly (readonly [string, ProgramSpec])[] = [
  [
    "rsync",
    {
      options:
        "e:! rsh:! rsync-path:! M:! remote-option:! files-from:< exclude-from:< include-from:< password-file:< " +
        "log-file:> write-batch:> only-write-batch:> read-batch:< T:> temp-dir:> backup-dir:> partial-dir:> " +
        "remove-source-files! delete! del! delete-before! delete-during! delete-delay! delete-after! delete-excluded! f: filter: exclude: include: B: a v r z n P q u l p t g o D h i c x W S H A X " +
        "archive verbose recursive compress dry-run progress partial update links perms times stats human-readable checksum " +
        "one-file-system whole-file bwlimit: timeout: max-size: min-size: info:",
      operands: "copy",
      fetches: true,
      below: true,
      removes: [
        {
          options: "delete del delete-before delete-during delete-delay delete-after delete-excluded",
          operands: "last",
        },
        { options: "remove-source-files", operands: "sources" },
      ],
    },
  ],
  [
    "scp",
    {
      options: "S:! o:! F:! D:! J:! i:< P: l: c: X: r p q v C 3 4 6 B",
      operands: "copy",
      fetches: true,
      below: "r",
      follows: true,
    },
  ],
  ["sftp", { options: "S:! o:! F:! D:! J:! b:<! i:< P: l: c: B: R: q v C r", operands: "text" }],
  [
    "ssh",
    {
      options:
        "o:! F:! E:> J:! S:! W:! L:! R:! D:! w:! I:! i:< l: p: b: c: e: m: B: O:! Q: 4 6 C f g K k M N n q s T t V v X x Y y A a",
      operands: "text",
    },
  ],
];

export const curlOptions = optionTable(
  "o:> output:> output-dir:> O! remote-name! remote-name-all! J! remote-header-name! K:<! config:<! D:> " +
    "dump-header:> c:> cookie-jar:> trace:> trace-ascii:> stderr:> libcurl:> etag-save:> etag-compare:< hsts:> " +
    "alt-svc:> T:< upload-file:< d:@ data:@ data-ascii:@ data-binary:@ data-urlencode:@ url-query:@ data-raw: json:@ F:@ " +
    "form:@ form-string: H:@ header:@ w:@ write-out:@ b:<@ cookie:<@ E:< cert:< key:< cacert:< capath:< netrc-file:< n! netrc! " +
    "A: e: u: X: x: m: r: U: C: Y: y: z: variable:@ user: user-agent: referer: request: proxy: url:@ " +
    "max-time: connect-timeout: retry: retry-delay: retry-max-time: limit-rate: unix-socket:! abstract-unix-socket:! engine:! " +
    "preproxy: connect-to: resolve: interface: dns-servers: doh-url: socks5: socks4: socks4a: socks5-hostname: noproxy: " +
    "s silent S show-error L location f fail fail-with-body k insecure i include I head v verbose g globoff G get compressed " +
    "4 6 ipv4 ipv6 N no-buffer p no-progress-meter progress-bar # 0 1 http1.1 http2 tlsv1.2 tlsv1.3 retry-all-errors max-redirs: range: help V version",
);

/** The options that leave a request to the one URL it names. */
const curlPinned = new Set(
  (
    "s silent S show-error L location f fail fail-with-body i include I head v verbose g globoff G get compressed 4 6 ipv4 " +
    "ipv6 N no-buffer no-progress-meter progress-bar # H header A user-agent e referer X request m max-time connect-timeout " +
    "retry retry-delay retry-max-time limit-rate w write-out http1.1 http2 tlsv1.2 tlsv1.3 retry-all-errors max-redirs o output r range"
  ).split(" "),
);

const otherProtocol = /^\s*(?:file|scp|sftp|dict|gopher|ldaps?|tftp|smbs?|telnet):/i;

export function judgeCurl(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), curlOptions);
  const urls = [
    ...scanned.operands,
    ...scanned.options.flatMap(({ name, value }) => (name === "url" && value !== undefined ? [value] : [])),
  ];
  return {
    ...judgement(
      false,
      [
        ...optionPaths(scanned.options),
        ...used([...encodedFiles(scanned), ...furtherFiles(scanned), ...fileUrls(urls)], "read"),
        ...remoteNames(scanned, urls),
      ],
      [
        optionRisk("curl", scanned),
        severalFiles(scanned),
        scanned.unclear,
        urls.some(({ text }) => otherProtocol.test(text))
          ? "curl reads files or speaks other protocols with such an address"
          : undefined,
      ],
    ),
    urls: { urls: urls.map(({ text }) => text), ...steering(scanned, curlPinned) },
  };
}

/** What curl writes by the name that an address or, with some options, only the server or a file of options says. */
function remoteNames(scanned: ScannedWords, urls: readonly Word[]): readonly UsedPath[] {
  const folders = valuesOf(scanned, "output-dir");
  const isFree = hasOption(scanned, "J", "remote-header-name", "K", "config");
  if (!isFree && !hasOption(scanned, "O", "remote-name", "remote-name-all")) return [];
  const isListed = !isFree && urls.every(({ text }) => !/[{}[\]]/.test(text));
  if (!isListed)
    return (folders.length === 0 ? [plainWord(".")] : folders).map((word) => ({
      word,
      use: "write",
      below: "all",
    }));
  return [...downloads(urls, folders), ...downloads(urls.map(withoutQuery), folders)];
}

function withoutQuery(url: Word): Word {
  return url.literal ? plainWord(url.text.replace(/[?#].*$/s, "")) : url;
}

/** The file in `--data-urlencode name@file` and `--variable name@file`. */
function encodedFiles({ options }: ScannedWords): Word[] {
  return options.flatMap(({ name, value }) => {
    const at = value?.text.indexOf("@") ?? -1;
    const isNamed = value !== undefined && at > 0 && /^(?:data-urlencode|url-query|variable)$/.test(name);
    return isNamed ? [sliceWord(value, at + 1)] : [];
  });
}

/** The files of a form that names several, of an upload by a pattern, and of a certificate with its password. */
function furtherFiles({ options }: ScannedWords): Word[] {
  return options.flatMap(({ name, value }) => {
    const splitter = splitters.get(name);
    const text = value?.text.replace(/^[^=@<]*=/, "") ?? "";
    const files = splitter === undefined ? [] : text.split(splitter);
    return files.length < 2
      ? []
      : files.flatMap((file) => /^[@<]*(.+)/s.exec(file)?.[1] ?? []).map(plainWord);
  });
}

const splitters: ReadonlyMap<string, RegExp> = new Map([
  ...["F", "form"].map((name): [string, RegExp] => [name, /[,;"()]+/]),
  ...["T", "upload-file"].map((name): [string, RegExp] => [name, /[{},[\]]+/]),
  ...["E", "cert", "key", "cacert"].map((name): [string, RegExp] => [name, /:/]),
]);

/** The files of addresses that name one on this machine; what looks like its host may be a folder. */
function fileUrls(urls: readonly Word[]): Word[] {
  return urls.flatMap((url) => {
    const rest = /^\s*file:(?:\/\/)?(.*)$/is.exec(url.text)?.[1];
    if (rest === undefined) return [];
    if (!url.literal || /[{}[\]]/.test(rest)) return [{ ...url, path: rest, pathKnown: false }];
    const decoded = decodeText(rest);
    const paths = new Set([decoded, decoded.replace(/^[^/]*/, "")]);
    return [...paths].filter((path) => path !== "").map(plainWord);
  });
}

/** What wget writes where nothing else is named: the last part of the path, with its escapes read, and the query. */
function downloads(urls: readonly Word[], folders: readonly Word[]): UsedPath[] {
  const folder = folders.at(-1);
  return urls.map((url): UsedPath => {
    const [, path = "", query = ""] = /^([^?#]*)(\?[^#]*)?/s.exec(url.text) ?? [];
    const name = `${decodeText(lastPart(path)) || "index.html"}${query}`.replaceAll("/", "%2F");
    const word = plainWord(folder === undefined ? name : `${folder.path}/${name}`);
    const isKnown = url.literal && folder?.literal !== false;
    return { word: isKnown ? word : { ...word, literal: false, pathKnown: false }, use: "write" };
  });
}

function lastPart(url: string): string {
  const path = url.replace(/^\s*[a-z][a-z0-9+.-]*:\/\//i, "");
  return path.includes("/") ? path.slice(path.lastIndexOf("/") + 1) : "";
}

function decodeText(text: string): string {
  return text.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
}

/** A form may name several files, and more of them behind `;`; an upload a pattern; a text that is written out, where to. */
function severalFiles({ options }: ScannedWords): string | undefined {
  const has = (names: RegExp, text: RegExp): boolean =>
    options.some(({ name, value }) => names.test(name) && text.test(value?.text ?? ""));
  if (has(/^(?:F|form)$/, /=.*[,;"(]/) || has(/^(?:T|upload-file)$/, /[{[]/))
    return "an option of curl may name further files";
  return has(/^(?:w|write-out)$/, /%output\{/) ? "an option of curl writes a file" : undefined;
}

export const wgetOptions = optionTable(
  "O:> output-document:> o:> output-file:> a:> append-output:> P:> directory-prefix:> i:< input-file:< e:! " +
    "execute:! config:! use-askpass:! post-file:< body-file:< save-cookies:> load-cookies:< warc-file:> " +
    "rejected-log:> hsts-file:> t: T: w: Q: U: l: A: R: D: I: X: B: q quiet post-data: body-data: header: " +
    "user: password: method: tries: timeout: user-agent: S x r m k p N c b! background! n: no-verbose v verbose spider " +
    "no-check-certificate server-response no-clobber content-disposition! trust-server-names! 4 6 show-progress",
);

const wgetPinned = new Set(
  "O output-document q quiet n no-verbose v verbose t tries T timeout U user-agent header S server-response spider 4 6".split(
    " ",
  ),
);

export function judgeWget(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), wgetOptions);
  const named = scanned.options.some(({ name }) => /^(?:O|output-document|spider)$/.test(name));
  // In whole trees, and for addresses in a list, the names are not known.
  const isMany = hasOption(scanned, "r", "m", "p", "x", "i", "input-file", "R");
  const folders = valuesOf(scanned, "P", "directory-prefix");
  const here = folders.length === 0 ? [plainWord(".")] : folders;
  const all = here.map((word): UsedPath => ({ word, use: "write", below: "all" }));
  const written = isMany ? all : [...used(here, "write"), ...downloads(scanned.operands, folders)];
  const paths = [...optionPaths(scanned.options), ...(named ? [] : written)];
  return {
    ...judgement(false, paths, [optionRisk("wget", scanned), scanned.unclear]),
    urls: { urls: scanned.operands.map(({ text }) => text), ...steering(scanned, wgetPinned) },
  };
}

function steering(
  { options, unclear }: ScannedWords,
  pinned: ReadonlySet<string>,
): { readonly steering?: string } {
  const found = options.find(
    ({ name, signs, value }) => !pinned.has(name) || (signs.includes("@") && /^[@<]/.test(value?.text ?? "")),
  );
  const reason =
    unclear ?? (found === undefined ? undefined : `the option ${found.name} can lead the request elsewhere`);
  return reason === undefined ? {} : { steering: reason };
}
