/** Bounds the memory that bodies of provider webhooks take: these routes have no rate limit. */
import { AppError } from '@sluice/sdk'
import type { BodyRoom } from './body.ts'

const BYTES_MAX = 256 * 1024 * 1024
const RETRY_AFTER_SECS = 5

/** The bytes of one body, and the request they belong to. */
class Body implements BodyRoom {
  readonly #budget: BodyBudget
  readonly channel: string
  readonly address: string
  bytes = 0
  evict: ((error: AppError) => void) | undefined
  wasEvicted = false

  constructor(budget: BodyBudget, channel: string, address: string) {
    this.#budget = budget
    this.channel = channel
    this.address = address
  }

  take(bytes: number): void {
    this.#budget.take(this, bytes)
  }

  onEvicted(listener: (error: AppError) => void): void {
    this.evict = listener
  }

  complete(): void {
    this.#budget.complete(this)
  }

  release(): void {
    this.#budget.free(this)
  }
}

/**
 * Counts only bytes that arrived, so that announcing a large body takes no room. One channel gets at most half of all room.
 * Unfinished bodies never keep others out: the address with the most unfinished bytes loses its oldest body first.
 */
export class BodyBudget {
  readonly #bytesMax: number
  readonly #channelBytesMax: number
  #taken = 0
  readonly #takenByChannel = new Map<string, number>()
  /** Oldest first. */
  readonly #unfinished = new Set<Body>()

  constructor(bytesMax = BYTES_MAX) {
    this.#bytesMax = bytesMax
    this.#channelBytesMax = Math.floor(bytesMax / 2)
  }

  /** Opens the room for the body of one request to a channel, from a client address. */
  open(channel: string, address: string): BodyRoom {
    return new Body(this, channel, address)
  }

  /** Called by a body. */
  take(body: Body, bytes: number): void {
    if (body.wasEvicted) throw noRoom()
    this.#makeRoom(body, bytes)
    this.#unfinished.add(body)
    this.#count(body, bytes)
  }

  /** Called by a body. */
  complete(body: Body): void {
    this.#unfinished.delete(body)
  }

  /** Called by a body. */
  free(body: Body): void {
    this.#unfinished.delete(body)
    this.#count(body, -body.bytes)
  }

  #count(body: Body, bytes: number): void {
    body.bytes += bytes
    this.#taken += bytes
    const ofChannel = (this.#takenByChannel.get(body.channel) ?? 0) + bytes
    if (ofChannel === 0) this.#takenByChannel.delete(body.channel)
    else this.#takenByChannel.set(body.channel, ofChannel)
  }

  #makeRoom(body: Body, bytes: number): void {
    for (;;) {
      const isChannelFull = (this.#takenByChannel.get(body.channel) ?? 0) + bytes > this.#channelBytesMax
      if (!isChannelFull && this.#taken + bytes <= this.#bytesMax) return
      const victim = this.#victimFor(body, isChannelFull ? body.channel : undefined)
      if (!victim) throw noRoom()
      this.free(victim)
      victim.wasEvicted = true
      victim.evict?.(noRoom())
    }
  }

  /** Finds the oldest unfinished body of the address that holds the most bytes, in one channel or in all. */
  #victimFor(body: Body, channel: string | undefined): Body | undefined {
    const candidates = [...this.#unfinished].filter((other) => other !== body && (channel === undefined || other.channel === channel))
    const held = new Map<string, number>()
    for (const { address, bytes } of candidates) held.set(address, (held.get(address) ?? 0) + bytes)
    const most = Math.max(0, ...held.values())
    return candidates.find(({ address, bytes }) => bytes > 0 && held.get(address) === most)
  }
}

const noRoom = (): AppError =>
  new AppError('unavailable', 'Too many unfinished webhook bodies are being received at once', { retryAfterSecs: RETRY_AFTER_SECS })
