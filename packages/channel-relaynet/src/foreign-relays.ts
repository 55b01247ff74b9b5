/**
 * Connections to relays that recipients named. Their addresses must be public, and the connection goes to the address that was
 * checked. They authenticate with a key that is used once: the relay need not learn who writes to its user.
 */
import { randomBytes } from 'node:crypto'
import { pinnedLookup } from '@sluice/kit'
import { AppError, errorText, type Host } from '@sluice/sdk'
import { Identity } from './identity.ts'
import { RelayLink, shownUrl } from './relay-link.ts'

interface Kept {
  readonly link: Promise<RelayLink>
  readonly close: AbortController
  usedAtMs: number
}

export const LINKS_MAX = 32
const IDLE_MS = 60_000

export class ForeignRelays {
  readonly #host: Host
  readonly #kept = new Map<string, Kept>()
  #sweeping: Promise<void> | undefined

  constructor(host: Host) {
    this.#host = host
  }

  get size(): number {
    return this.#kept.size
  }

  /** Returns a connection. Throws `forbidden` for an address that is not public, and `unavailable` when it cannot be reached. */
  async link(url: string, signal: AbortSignal): Promise<RelayLink> {
    const known = this.#kept.get(url)
    if (known) {
      const link = await known.link.catch(() => undefined)
      if (link?.isOpen) {
        known.usedAtMs = this.#host.clock.monotonicMs()
        return link
      }
      if (this.#kept.get(url) === known) this.#kept.delete(url)
    }
    this.#makeRoom()
    const close = new AbortController()
    const kept: Kept = { link: this.#open(url, close.signal, signal), close, usedAtMs: this.#host.clock.monotonicMs() }
    this.#kept.set(url, kept)
    this.#sweeping ??= this.#sweep()
    try {
      return await kept.link
    } catch (error) {
      if (this.#kept.get(url) === kept) this.#kept.delete(url)
      throw error
    }
  }

  /** Closes all connections. */
  close(): void {
    for (const { close } of this.#kept.values()) close.abort()
    this.#kept.clear()
  }

  async #open(url: string, close: AbortSignal, signal: AbortSignal): Promise<RelayLink> {
    const { clock } = this.#host
    const hostname = new URL(url).hostname.replace(/^\[|\]$/g, '')
    try {
      const addresses = await this.#host.publicAddresses(hostname, signal)
      return await RelayLink.open(url, {
        clock,
        identity: new Identity(randomBytes(32)),
        isOwn: false,
        lookup: pinnedLookup(addresses),
        signal: close,
      })
    } catch (error) {
      if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
      if (error instanceof AppError && (error.code === 'forbidden' || error.code === 'unavailable')) throw error
      throw new AppError('unavailable', `${shownUrl(url)} cannot be reached: ${errorText(error)}`)
    }
  }

  #makeRoom(): void {
    while (this.#kept.size >= LINKS_MAX) {
      const [oldest] = [...this.#kept].toSorted(([, a], [, b]) => a.usedAtMs - b.usedAtMs)
      if (!oldest) return
      oldest[1].close.abort()
      this.#kept.delete(oldest[0])
    }
  }

  /** Closes connections that were not used for a minute. Ends when none is left. */
  async #sweep(): Promise<void> {
    const { clock } = this.#host
    while (this.#kept.size > 0) {
      await clock.sleep(IDLE_MS)
      for (const [url, { close, usedAtMs }] of this.#kept) {
        if (clock.monotonicMs() - usedAtMs < IDLE_MS) continue
        close.abort()
        this.#kept.delete(url)
      }
    }
    this.#sweeping = undefined
  }
}
