/** Requests that may wait longer than Node's `fetch` does, which gives up after 300 s without a header or a byte of the answer. */

/** The longest time that `fetch` itself waits for the next byte, in seconds. */
const FETCH_SECS_MAX = 300

type Dispatcher = NonNullable<RequestInit['dispatcher']>

/** `fetcher` without a time limit of its own if `secs`, the limit of its caller, is longer than that of Node; else `fetcher` itself. */
export function patientFetch(fetcher: typeof fetch, secs: number): typeof fetch {
  if (secs <= FETCH_SECS_MAX) return fetcher
  let loading: Promise<Dispatcher> | undefined
  return async (input, init) => {
    loading ??= loadDispatcher()
    return fetcher(input, { ...init, dispatcher: await loading })
  }
}

/** The library that Node's `fetch` is made of. Node documents its classes as the values of the option `dispatcher`. */
async function loadDispatcher(): Promise<Dispatcher> {
  const [{ default: undici }, { proxySettings }] = await Promise.all([import('undici'), import('./proxy.ts')])
  const { HTTP_PROXY = '', HTTPS_PROXY = '', NO_PROXY = '*' } = proxySettings() ?? {}
  const proxies = { httpProxy: HTTP_PROXY, httpsProxy: HTTPS_PROXY, noProxy: NO_PROXY }
  // The types of the library describe another version than the types of Node.
  return new undici.EnvHttpProxyAgent({ ...proxies, headersTimeout: 0, bodyTimeout: 0 }) as unknown as Dispatcher
}
