/** The proxy that the environment names, as other programs read it: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, also in small letters. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { AppError } from '@sluice/sdk'

/** The variables in the form that Node takes. */
export interface ProxySettings {
  readonly HTTP_PROXY?: string
  readonly HTTPS_PROXY?: string
  readonly NO_PROXY: string
}

/** Requests to this machine never leave it: commands reach the daemon there, and many services that a daemon uses run on the same machine. */
const DIRECT = ['localhost', '127.0.0.1', '[::1]']

/** Returns undefined where the environment names no proxy. Throws `invalid_request` for one that is not an HTTP URL. */
export function proxySettings(env: Readonly<Record<string, string | undefined>> = process.env): ProxySettings | undefined {
  const given = (name: string): string => env[name.toLowerCase()] || env[name] || ''
  const named = (['HTTP_PROXY', 'HTTPS_PROXY'] as const).flatMap((name) => {
    const value = given(name)
    return value === '' ? [] : [[name, checked(name, value)] as const]
  })
  if (named.length === 0) return undefined
  const direct = given('NO_PROXY') === '' ? DIRECT : [given('NO_PROXY'), ...DIRECT]
  return { ...Object.fromEntries(named), NO_PROXY: direct.join(',') }
}

function checked(name: string, value: string): string {
  const url = URL.parse(value)
  if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return value
  throw new AppError(
    'invalid_request',
    `The variable ${name} of the environment does not hold the URL of a proxy, such as http://proxy.example:3128`,
  )
}

/**
 * The agent for one request of `node:http`, or for a WebSocket, to a URL of another machine; undefined where no proxy is named. Requests of
 * `fetch` use the proxy without it.
 */
export function proxyAgent(url: URL): HttpsAgent | undefined {
  const proxyEnv = proxySettings()
  if (!proxyEnv) return undefined
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:'
  // Callers pass the agent on and nothing else, so that its class makes no difference to them.
  return new (isSecure ? HttpsAgent : HttpAgent)({ proxyEnv: { ...proxyEnv } }) as HttpsAgent
}
