/** Names the steps that have begun and not ended, so that a stop which takes too long can say what it waits for. */
export class OpenSteps {
  readonly #open = new Map<Promise<unknown>, string>()

  /** The steps that have not ended, in the order in which they began. */
  get names(): readonly string[] {
    return [...this.#open.values()]
  }

  /** Settles as the step does. */
  async during<Result>(name: string, step: Promise<Result>): Promise<Result> {
    this.#open.set(step, name)
    try {
      return await step
    } finally {
      this.#open.delete(step)
    }
  }
}
