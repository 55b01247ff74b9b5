/** Counts the bodies that a client is sending for the text that it may have waiting (`waiting_mb` of `[limits]`), before turns count them. */
import type { LimitedClient, Shares } from '@sluice/agent'
import { BODY_BYTES_MAX, type BodyRoom } from './body.ts'

export class BodyShare implements BodyRoom, Disposable {
  readonly #shares: Shares
  readonly #client: LimitedClient
  #bytes = 0

  constructor(shares: Shares, client: LimitedClient) {
    this.#shares = shares
    this.#client = client
  }

  /** Throws `share_used` for a body that announces more bytes than there is room for. Nothing of it has been read by then. */
  checkDeclared(bytes: number): void {
    if (bytes > BODY_BYTES_MAX) this.#check(bytes)
  }

  take(bytes: number): void {
    // A small body has room always, so that an approval or an abort can end what waits.
    if (this.#bytes + bytes > BODY_BYTES_MAX) this.#check(bytes)
    this.#bytes += bytes
    this.#shares.add(this.#client, 'waitingBytes', bytes)
  }

  /** No request evicts the body of another one. */
  onEvicted(): void {}

  complete(): void {}

  release(): void {
    this.#shares.add(this.#client, 'waitingBytes', -this.#bytes)
    this.#bytes = 0
  }

  [Symbol.dispose](): void {
    this.release()
  }

  /** The only body of a client always has room, so that the share never refuses a single body. */
  #check(more: number): void {
    const held = this.#shares.heldBy(this.#client, 'waitingBytes')
    if (held > this.#bytes) this.#shares.check(this.#client, 'waitingBytes', held + more)
  }
}
