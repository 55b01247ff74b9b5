/** Keeps the messages of a conversation in their order while some of them wait for an answer of the platform. */
export class ConversationOrder {
  /** The newest message of each conversation that waits. */
  readonly #newest = new Map<string, Promise<unknown>>()

  /** Resolves to what `waiting` resolves to, after the earlier messages of the conversation. `waiting` must not reject. */
  async after<T>(conversation: string, waiting: Promise<T>): Promise<T> {
    const mine = Promise.all([waiting, this.#newest.get(conversation)])
    this.#newest.set(conversation, mine)
    const [result] = await mine
    if (this.#newest.get(conversation) === mine) this.#newest.delete(conversation)
    return result
  }
}
