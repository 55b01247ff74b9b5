/**
 * The cookie of a browser session, and the proof that a page of this daemon sent a request with it. Browsers send a cookie to every port of
 * a host and along with requests of other pages, so the cookie alone never suffices for a change, a stream or a WebSocket.
 */
import { AppError, sha256Hex } from '@sluice/sdk'
import { type AllowedHosts, publicOrigin } from '../middleware/origin.ts'
import { basePathOf, type HttpContext, headersOf } from '../request/context.ts'

/** The header that a page of this daemon sends. A page of another origin would need the consent of the daemon, which it never gives. */
export const PAGE_HEADER = 'x-sluice-dashboard'

/** A browser may send several cookies of one name, for different paths. */
const COOKIES_MAX = 4
/** What `newSession` makes. */
const TOKEN = /^[\w-]{43}$/
/** A segment of a path that a `Set-Cookie` header may contain. */
const SEGMENT = /^[\w.~%-]{1,200}$/
const SEGMENTS_MAX = 8

/** Hashes the token of a session differently from a bearer token, so that neither can be used as the other. */
export const sessionHash = (token: string): string => sha256Hex(`browser session ${token}`)

/** Knows the address of the daemon, as `DaemonParts` does. */
interface Addressed {
  readonly url?: () => string | null
}

/** The name has the port that the browser uses: browsers send the cookies of a host to all of its ports. */
export function cookieName(c: HttpContext, { url }: Addressed): string {
  const port = /:(\d{1,5})$/.exec(headersOf(c).get('host') ?? '')?.[1] ?? URL.parse(url?.() ?? '')?.port ?? ''
  return port === '' ? 'sluice_session' : `sluice_session_${port}`
}

/** The session cookies of a request. */
export interface SessionCookies {
  /** The first tokens that have the form of ours. */
  readonly tokens: readonly string[]
  /** How many cookies have the name of ours, with or without such a token. */
  readonly count: number
}

/** Reads the session cookies of a request. A value without the form of a token is not looked up. */
export function sessionCookies(c: HttpContext, parts: Addressed): SessionCookies {
  const header = headersOf(c).get('cookie')
  if (header === null) return { tokens: [], count: 0 }
  const start = `${cookieName(c, parts)}=`
  const values = header
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(start))
    .map((cookie) => cookie.slice(start.length))
  return { tokens: [...new Set(values.filter((value) => TOKEN.test(value)))].slice(0, COOKIES_MAX), count: values.length }
}

/**
 * Returns the headers that delete the cookies of our name at longer paths than ours, which no page of this daemon sets: a page on another
 * port of this host planted them. A browser sends them first, and does not say for which path each is. Those at our own path stay.
 */
export function plantedCookies(c: HttpContext, parts: Addressed, { public_url }: Gateway): string[] {
  const name = cookieName(c, parts)
  const own = basePathOf(c)
  const { pathname } = new URL(c.req.url)
  const below = pathname.startsWith(`${own}/`) ? pathname.slice(own.length) : pathname
  const bases = new Set([own, public_url === undefined ? '' : new URL(public_url).pathname.replace(/\/$/, '')])
  return [...bases].flatMap((base) =>
    longerPaths(base, below).map((path) => `${name}=; Path=${path}; Max-Age=0; HttpOnly; SameSite=Strict`),
  )
}

/** Returns the paths of cookies that a browser sends along with a request to `base` and `below`, and that are longer than `base`. */
function longerPaths(base: string, below: string): string[] {
  const paths: string[] = base === '' ? [] : [`${base}/`]
  let path = base
  for (const segment of below.split('/').slice(1, SEGMENTS_MAX + 1)) {
    if (!SEGMENT.test(segment)) break
    path += `/${segment}`
    paths.push(path, `${path}/`)
  }
  return paths
}

type Gateway = Pick<AllowedHosts, 'public_url'>

/**
 * Throws `forbidden` unless a page of this daemon sent the request: a change and a WebSocket name exactly our origin, a change also has
 * the header of the page, and a stream has the header or the browser's word that the page has our origin.
 */
export function checkPage(c: HttpContext, gateway: Gateway, opensStream = false): void {
  const headers = headersOf(c)
  const isChange = c.req.method !== 'GET' && c.req.method !== 'HEAD'
  const isSocket = headers.get('upgrade') !== null
  const site = headers.get('sec-fetch-site')
  const hasHeader = headers.get(PAGE_HEADER) !== null
  if (headers.get('origin') !== null || isChange || isSocket) requireOwnOrigin(c, gateway)
  // `none` is a person who typed the address.
  if (site !== null && site !== 'same-origin' && (site !== 'none' || isChange || isSocket || opensStream)) throw foreign()
  if ((isChange || (opensStream && !isSocket && site === null)) && !hasHeader)
    throw new AppError('forbidden', 'A session needs the header X-Sluice-Dashboard here')
}

/** Returns the `Origin` of a request of one of our pages. Throws `forbidden` for any other. */
export function requireOwnOrigin(c: HttpContext, gateway: Gateway): string {
  const headers = headersOf(c)
  const origin = headers.get('origin')
  const scheme = c.get('peer').isSecure ? 'https' : 'http'
  const own = [URL.parse(`${scheme}://${headers.get('host') ?? ''}`)?.origin, publicOrigin(gateway)]
  if (origin === null || origin === 'null' || !own.includes(origin)) throw foreign()
  return origin
}

const foreign = (): AppError =>
  new AppError(
    'forbidden',
    'The request does not come from a page of this daemon. Behind a proxy, set [gateway] public_url to the address in the browser',
  )
