/** Aims kills: the daemon dies at the instant at which a fake sees a certain event, before the fake answers. */

export class Aims {
  #armed: { readonly moment: string; left: number; readonly fire: () => void } | undefined
  readonly #hits = new Map<string, number>()
  #reached = 0

  /** Calls `fire` when the moment is reached for the nth time from now. Replaces an earlier call. */
  arm(moment: string, nth: number, fire: () => void): void {
    this.#armed = { moment, left: nth, fire }
  }

  disarm(): void {
    this.#armed = undefined
  }

  /** Called by a fake before it answers. */
  reach(moment: string): void {
    this.#reached += 1
    const armed = this.#armed
    if (!armed || armed.moment !== moment || --armed.left > 0) return
    this.#armed = undefined
    this.#hits.set(moment, (this.#hits.get(moment) ?? 0) + 1)
    armed.fire()
  }

  /** How many moments were reached, whether or not a kill was aimed at them. */
  get reached(): number {
    return this.#reached
  }

  /** How many kills hit each moment. */
  get hits(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#hits)
  }
}
