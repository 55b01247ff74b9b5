/** A smaller difference is that of the network and of clocks that are kept right. */
const TOLERATED_MS = 2_000

/**
 * The clock of the database, which all nodes share. The time of a next attempt is stored by it: a node whose own clock is an hour ahead
 * would else make the next owner of a row wait for an hour.
 */
export class ServerClock {
  #aheadMs = 0
  /** How far the clock of this machine is ahead of that of the database, as measured last. */
  offsetMs: number | null = null

  /** Call it with the time that an answer of the database tells, and with the times of its request and of its arrival by `Date.now()`. A late answer tells nothing. */
  told(serverMs: number, sentMs: number, arrivedMs: number): void {
    if (arrivedMs - sentMs > TOLERATED_MS) return
    const aheadMs = serverMs - (sentMs + arrivedMs) / 2
    this.offsetMs = -aheadMs
    this.#aheadMs = Math.abs(aheadMs) < TOLERATED_MS ? 0 : aheadMs
  }

  fromLocal(ms: number): number {
    return ms + this.#aheadMs
  }

  toLocal(ms: number): number {
    return ms - this.#aheadMs
  }
}
