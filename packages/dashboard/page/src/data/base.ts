/** The addresses of the gateway. They are relative to the page, so that it works under any path of a proxy. */

/** The folder that the page was loaded from, with a slash at its end. */
export const BASE = new URL('./', location.href.split('#')[0])

/** Returns the address of a WebSocket of the gateway. */
export function socketUrl(path: string, query: Readonly<Record<string, string | undefined>> = {}): URL {
  const url = new URL(path, BASE)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
  return url
}
