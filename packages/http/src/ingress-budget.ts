/** How many bytes of webhook bodies may be in memory at once: these routes have no rate limit (§8), so memory needs one. */
import { AppError } from '@sluice/sdk'

/** The room of one body. */
export interface BodyRoom {
  /**
   * Takes room for bytes as they arrive; where there is none, unfinished bodies of others are evicted. Throws `unavailable`
   * when that does not suffice, or when this body was evicted itself.
   */
  take(bytes: number): void
  /** Calls `listener` when this body is evicted. */
  onEvicted(listener: (error: AppError) => void): void
  /** The whole body has arrived: it is not evicted any more. */
  complete(): void
  /** Gives all of it back. */
  release(): void
}

export interface IngressBudget {
  /** For one request to a channel, from a client address. */
  open(channel: string, peer: string): BodyRoom
}

const BYTES_MAX = 256 * 1024 * 1024
const RETRY_AFTER_SECS = 5

class Room {
  readonly channel: string
  readonly peer: string
  bytes = 0
  evict: ((error: AppError) => void) | undefined
  isEvicted = false

  constructor(channel: string, peer: string) {
    this.channel = channel
    this.peer = peer
  }
}

/**
 * Only what has arrived counts: what is announced costs a stranger nothing. One channel gets at most half of all room. Bodies
 * that stay unfinished never keep others out: the address that holds the most unfinished bytes loses its oldest body first.
 */
export function createIngressBudget(bytesMax = BYTES_MAX): IngressBudget {
  const channelBytesMax = Math.floor(bytesMax / 2)
  let taken = 0
  const takenByChannel = new Map<string, number>()
  /** Oldest first. */
  const unfinished = new Set<Room>()

  const add = (room: Room, bytes: number): void => {
    room.bytes += bytes
    taken += bytes
    const ofChannel = (takenByChannel.get(room.channel) ?? 0) + bytes
    if (ofChannel === 0) takenByChannel.delete(room.channel)
    else takenByChannel.set(room.channel, ofChannel)
  }

  const free = (room: Room): void => {
    unfinished.delete(room)
    add(room, -room.bytes)
  }

  /** The oldest unfinished body of the address that holds the most of the candidates' bytes. */
  const victimFor = (room: Room, channel: string | undefined): Room | undefined => {
    const candidates = [...unfinished].filter((other) => other !== room && (channel === undefined || other.channel === channel))
    const held = new Map<string, number>()
    for (const { peer, bytes } of candidates) held.set(peer, (held.get(peer) ?? 0) + bytes)
    const most = Math.max(0, ...held.values())
    return candidates.find(({ peer, bytes }) => bytes > 0 && held.get(peer) === most)
  }

  const makeRoom = (room: Room, bytes: number): void => {
    for (;;) {
      const isChannelFull = (takenByChannel.get(room.channel) ?? 0) + bytes > channelBytesMax
      if (!isChannelFull && taken + bytes <= bytesMax) return
      const victim = victimFor(room, isChannelFull ? room.channel : undefined)
      if (!victim) throw noRoom()
      free(victim)
      victim.isEvicted = true
      victim.evict?.(noRoom())
    }
  }

  return {
    open(channel, peer) {
      const room = new Room(channel, peer)
      return {
        take(bytes) {
          if (room.isEvicted) throw noRoom()
          makeRoom(room, bytes)
          unfinished.add(room)
          add(room, bytes)
        },
        onEvicted(listener) {
          room.evict = listener
        },
        complete: () => void unfinished.delete(room),
        release: () => free(room),
      }
    },
  }
}

const noRoom = (): AppError =>
  new AppError('unavailable', 'Too many unfinished webhook bodies are being received at once', { retryAfterSecs: RETRY_AFTER_SECS })
