/** Begins, renews and ends the session of a browser: see `BrowserSession` in the sdk. */
import { newSession } from '@sluice/runtime'
import type { BrowserSession, NewBrowserSession } from '@sluice/sdk'
import { basePathOf, type HttpContext } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import type { SessionPrincipal } from './auth.ts'
import { checkPage, cookieName, requireOwnOrigin, sessionCookies, sessionHash } from './browser-cookie.ts'

const DAY_MS = 86_400_000
/** A session ends when it was not used for so long. */
export const SESSION_MS = 30 * DAY_MS
/** A session that is used is renewed at most once in this time. */
const RENEWAL_MS = DAY_MS

export class CookieSession implements BrowserSession {
  readonly #context: HttpContext
  readonly #parts: AppParts

  constructor(context: HttpContext, parts: AppParts) {
    this.#context = context
    this.#parts = parts
  }

  check(): void {
    checkPage(this.#context, this.#parts.snapshot.gateway)
  }

  async begin({ name, role, issuedBy }: NewBrowserSession) {
    const { runtime, auth } = this.#parts
    const { store, clock, bus, log } = runtime
    const all = await this.#all()
    const before = all.length === 1 ? all[0] : undefined
    const expiresAtMs = clock.nowMs() + SESSION_MS
    const made = newSession({ name, role, issuedBy, expiresAtMs }, clock, sessionHash)
    const isSame = before?.role === role && before.row.issuedBy === issuedBy
    const keeps = isSame && (await store.devices.rotate(before.device, made.row.tokenHash, expiresAtMs))
    const device = keeps ? before.device : made.row.id
    if (!keeps) {
      await store.devices.add(made.row)
      bus.emit({ type: 'device_paired', device_id: device, name: made.row.name })
      for (const { device: replaced } of all) await this.#revoke(replaced)
    }
    await auth.checkStreams()
    log.info('browser signed in', { device, name: made.row.name, role })
    return { device, expiresAtMs, setCookie: this.#cookie(made.token, SESSION_MS) }
  }

  async renew() {
    const { store, clock } = this.#parts.runtime
    const current = await this.#current()
    const expiresAtMs = clock.nowMs() + SESSION_MS
    if (!current || (current.row.expiresAtMs ?? expiresAtMs) > expiresAtMs - RENEWAL_MS) return undefined
    await store.devices.rotate(current.device, sessionHash(current.token), expiresAtMs)
    return { expiresAtMs, setCookie: this.#cookie(current.token, SESSION_MS) }
  }

  async end() {
    const current = await this.#current()
    if (current) await this.#revoke(current.device)
    return { setCookie: this.#cookie('', 0) }
  }

  /** The sessions that the request has. A browser has one, unless a page of another port gave it another one. */
  #all(): Promise<readonly SessionPrincipal[]> {
    this.check()
    return this.#parts.auth.sessions(sessionCookies(this.#context, this.#parts).tokens, this.#context.get('peer').address)
  }

  async #current(): Promise<SessionPrincipal | undefined> {
    return (await this.#all())[0]
  }

  /** Passkeys that the session registered stay, because their owner, who is still trusted, signs out. */
  async #revoke(device: string): Promise<void> {
    const { runtime, auth } = this.#parts
    await runtime.store.devices.revoke(device, { keepPasskeys: true })
    await auth.checkStreams()
    runtime.bus.emit({ type: 'device_revoked', device_id: device })
    runtime.log.info('browser signed out', { device })
  }

  #cookie(token: string, ageMs: number): string {
    const { gateway } = this.#parts.snapshot
    const { origin, path } = this.#place(gateway)
    const attributes = [
      `${cookieName(this.#context, this.#parts)}=${token}`,
      `Path=${path}`,
      `Max-Age=${Math.floor(ageMs / 1000)}`,
      'HttpOnly',
      'SameSite=Strict',
    ]
    return [...attributes, ...(origin.startsWith('https:') ? ['Secure'] : [])].join('; ')
  }

  /** Where the browser sees this daemon: below a path of an embedding program, or of a proxy at the public address. */
  #place(gateway: AppParts['snapshot']['gateway']): { readonly origin: string; readonly path: string } {
    const ownPath = basePathOf(this.#context) || '/'
    const publicUrl = gateway.public_url === undefined ? undefined : new URL(gateway.public_url)
    const origin = requireOwnOrigin(this.#context, gateway)
    if (publicUrl?.origin !== origin) return { origin, path: ownPath }
    const publicPath = publicUrl.pathname.replace(/\/$/, '')
    return { origin, path: publicPath === '' ? ownPath : publicPath }
  }
}
