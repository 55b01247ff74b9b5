/** Counts what a judge finds, and keeps the details of each violation. */
import type { InboxState, OutboxState } from '@sluice/sdk'
import type { Violation } from '../history.ts'
import type { PlayRow } from './play.ts'

type Figure = 'unfinished' | 'lost' | 'doubled' | 'toldTwice' | 'outOfOrder'

export class Tally {
  readonly violations: Violation[] = []
  readonly #what: string
  readonly #counts = { accepted: 0, unfinished: 0, lost: 0, doubled: 0, toldTwice: 0, outOfOrder: 0, uncertain: 0 }

  constructor(what: string) {
    this.#what = what
  }

  accept(): void {
    this.#counts.accepted += 1
  }

  beUncertain(): void {
    this.#counts.uncertain += 1
  }

  /** Counts a violation. */
  report(figure: Figure, detail: string): void {
    this.#counts[figure] += 1
    this.violations.push({ rule: `${this.#what}: ${figure}`, detail })
  }

  get row(): PlayRow {
    return { what: this.#what, ...this.#counts }
  }
}

const UNENDED: readonly (InboxState | OutboxState)[] = ['pending', 'running', 'queued', 'sending', 'failed']

/** How a message or a reply counts that had no effect. `state` is that of its row, or undefined without a row. */
export const missedAs = (state: InboxState | OutboxState | undefined): 'unfinished' | 'lost' =>
  state !== undefined && UNENDED.includes(state) ? 'unfinished' : 'lost'

/** Counts each item that follows one with a higher number. Items without a number are skipped. */
export function reportDisorder(tally: Tally, names: readonly string[], numberOf: (name: string) => number | undefined): void {
  let before: { readonly name: string; readonly number: number } | undefined
  for (const name of names) {
    const number = numberOf(name)
    if (number === undefined) continue
    if (before && before.number > number) tally.report('outOfOrder', `${name} came after ${before.name}`)
    before = { name, number }
  }
}
