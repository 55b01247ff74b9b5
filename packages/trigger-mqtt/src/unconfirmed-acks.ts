/**
 * Acknowledgements that the broker may not have received. The broker handles packets in order, so its answer to a ping
 * confirms every acknowledgement that was sent before that ping.
 */
export class UnconfirmedAcks {
  /** Packet ids, each with the number of the ping that confirms it. Packet ids have 16 bits, which bounds the map. */
  readonly #confirmingPings = new Map<number, number>()
  #sent = 0
  #answered = 0

  /** Whether a ping would confirm an acknowledgement and no earlier ping awaits its answer. */
  get shouldPing(): boolean {
    return this.#confirmingPings.size > 0 && this.#sent === this.#answered
  }

  acknowledged(packetId: number): void {
    this.#confirmingPings.set(packetId, this.#sent + 1)
  }

  pingSent(): void {
    this.#sent++
  }

  /** Returns the packet ids whose acknowledgement the answer confirms. */
  pingAnswered(): number[] {
    this.#answered++
    const confirmed = [...this.#confirmingPings].filter(([, ping]) => ping <= this.#answered).map(([packetId]) => packetId)
    for (const packetId of confirmed) this.#confirmingPings.delete(packetId)
    return confirmed
  }
}
