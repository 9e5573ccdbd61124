/** What lowlight's types name of highlight.js, whose own types would bring those of a browser into every file. */
export type LanguageFn = (hljs: unknown) => unknown;
