/**
 * Acknowledgements the broker may not have received. It handles what we send in order, so the answer to a ping proves all
 * that was acknowledged before that ping.
 */
export class UnprovedAcks {
  /** Packet ids, each with the number of the ping that proves it; packet ids are 16 bits. */
  readonly #proofs = new Map<number, number>()
  #asked = 0
  #answered = 0

  /** A ping that is sent now would prove something, and none is on its way. */
  get shouldPing(): boolean {
    return this.#proofs.size > 0 && this.#asked === this.#answered
  }

  acknowledged(packetId: number): void {
    this.#proofs.set(packetId, this.#asked + 1)
  }

  pingSent(): void {
    this.#asked++
  }

  /** The packet ids whose acknowledgement is proved by it. */
  pingAnswered(): number[] {
    this.#answered++
    const proved = [...this.#proofs].filter(([, ping]) => ping <= this.#answered).map(([packetId]) => packetId)
    for (const packetId of proved) this.#proofs.delete(packetId)
    return proved
  }
}
