/** The callers that wait for the decision of an approval. */
import type { Approval, ApprovalKey } from '@sluice/sdk'
import { keyText } from './new-approval.ts'

interface Waiting {
  readonly key: ApprovalKey
  readonly resolve: Set<(approval: Approval) => void>
}

/** Bounded by the approvals that wait. */
export class Waiters {
  readonly #read: (key: ApprovalKey) => Promise<Approval | undefined>
  readonly #waiting = new Map<string, Waiting>()

  constructor(read: (key: ApprovalKey) => Promise<Approval | undefined>) {
    this.#read = read
  }

  has(key: ApprovalKey): boolean {
    return this.#waiting.has(keyText(key))
  }

  keys(): ApprovalKey[] {
    return [...this.#waiting.values()].map(({ key }) => key)
  }

  /** Resolves to the decided approval; to undefined if `signal` aborts first, or no approval has this key. */
  async decision(key: ApprovalKey, signal: AbortSignal): Promise<Approval | undefined> {
    const { promise, resolve } = Promise.withResolvers<Approval | undefined>()
    const text = keyText(key)
    const waiting = this.#waiting.get(text) ?? { key, resolve: new Set() }
    this.#waiting.set(text, waiting)
    waiting.resolve.add(resolve)
    const leave = (): void => resolve(undefined)
    signal.addEventListener('abort', leave, { once: true })
    try {
      const approval = await this.#read(key)
      if (approval?.state !== 'pending') return approval
      return signal.aborted ? undefined : await promise
    } finally {
      signal.removeEventListener('abort', leave)
      waiting.resolve.delete(resolve)
      if (waiting.resolve.size === 0 && this.#waiting.get(text) === waiting) this.#waiting.delete(text)
    }
  }

  /** Gives a decided approval to its callers. */
  answer(approval: Approval): void {
    const text = keyText(approval)
    const waiting = this.#waiting.get(text)
    this.#waiting.delete(text)
    for (const resolve of waiting?.resolve ?? []) resolve(approval)
  }
}
