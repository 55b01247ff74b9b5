/** The string parser alone: the package's entry also loads its stream parser and its writer. */
declare module '@iarna/toml/parse-string.js' {
  export default function parseString(text: string): Record<string, unknown>
}
