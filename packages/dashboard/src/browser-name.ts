/** The name of a browser in the list of devices, such as `Firefox on Linux`. It is made of known words only: a browser sends any text. */

const BROWSERS = [
  ['Firefox', /Firefox\/|FxiOS\//],
  ['Edge', /Edg(?:A|iOS)?\//],
  ['Opera', /OPR\//],
  ['Chrome', /Chrome\/|CriOS\//],
  ['Safari', /Safari\//],
] as const

const SYSTEMS = [
  ['Android', /Android/],
  ['iOS', /iPhone|iPad/],
  ['Windows', /Windows/],
  ['macOS', /Macintosh|Mac OS X/],
  ['ChromeOS', /CrOS/],
  ['Linux', /Linux/],
] as const

const AGENT_CHARS_MAX = 512

const firstIn = (names: readonly (readonly [string, RegExp])[], text: string): string | undefined =>
  names.find(([, pattern]) => pattern.test(text))?.[0]

/** Names the browser of a `User-Agent` header. */
export function browserName(agent: string | null): string {
  const text = (agent ?? '').slice(0, AGENT_CHARS_MAX)
  const system = firstIn(SYSTEMS, text)
  return `${firstIn(BROWSERS, text) ?? 'browser'}${system === undefined ? '' : ` on ${system}`}`
}
