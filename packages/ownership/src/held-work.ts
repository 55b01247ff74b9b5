/** Work that runs under a lease of its own, such as that of a leader or of the connection of a channel. */
import { backoffMs, signalScope } from '@sluice/kit'
import { type Clock, isLeaseLost, type Lease, type LeaseName, type Logger, type OwnedStore, type Store } from '@sluice/sdk'
import { hasAborted, REACQUIRE, STABLE_MS } from './acquire-again.ts'

export type WorkUnderLease = (owned: OwnedStore, signal: AbortSignal) => Promise<void>

export interface HeldWorkOptions {
  readonly store: Pick<Store, 'leases' | 'under'>
  readonly clock: Clock
  readonly log: Logger
  /** Whether this process ever takes a lease of this name. */
  readonly mayTake: (name: LeaseName) => boolean
  /** Aborts when the process stops. */
  readonly stopping: AbortSignal
}

export class HeldWork {
  readonly #options: HeldWorkOptions
  /** The work that has not ended, with its lease. */
  readonly #holding = new Map<Promise<void>, LeaseName>()
  /** Aborts when this process may hold nothing; another one replaces it once it may again. */
  #allowed = new AbortController()
  #allowedAgain = Promise.withResolvers<void>()

  constructor(options: HeldWorkOptions) {
    this.#options = options
  }

  get names(): readonly LeaseName[] {
    return [...this.#holding.values()]
  }

  /** See `Ownership.whileHolding`. */
  keep(name: LeaseName, work: WorkUnderLease, signal: AbortSignal): Promise<void> {
    const holding = this.#keep(name, work, signal).finally(() => this.#holding.delete(holding))
    this.#holding.set(holding, name)
    return holding
  }

  /** Lets work take leases, or ends what is held. */
  allow(isAllowed: boolean): void {
    if (isAllowed !== this.#allowed.signal.aborted) return
    if (!isAllowed) {
      this.#allowed.abort()
      return
    }
    this.#allowed = new AbortController()
    this.#allowedAgain.resolve()
    this.#allowedAgain = Promise.withResolvers()
  }

  async ended(): Promise<void> {
    await Promise.all(this.#holding.keys())
  }

  async #keep(name: LeaseName, work: WorkUnderLease, signal: AbortSignal): Promise<void> {
    const { store, clock, log, mayTake, stopping } = this.#options
    using scope = signalScope([signal, stopping])
    if (!mayTake(name)) return hasAborted(scope.signal)
    for (let losses = 0; !scope.signal.aborted; losses++) {
      await this.#untilAllowed(scope.signal)
      if (scope.signal.aborted) return
      const startedMs = clock.monotonicMs()
      const allowed = this.#allowed.signal
      using either = signalScope([scope.signal, allowed])
      try {
        const lease = await store.leases.acquire(name, either.signal)
        await workUnder(lease, (ended) => work(store.under(lease), ended), either.signal)
      } catch (error) {
        if (!either.signal.aborted && !isLeaseLost(error)) log.error('work under a lease failed', { lease: name, error })
      }
      if (!either.signal.aborted) log.info('lease lost or work ended: taking the lease again', { lease: name })
      if (scope.signal.aborted) return
      if (allowed.aborted) continue
      if (clock.monotonicMs() - startedMs >= STABLE_MS) losses = 0
      await clock.sleep(backoffMs(losses, REACQUIRE), scope.signal)
    }
  }

  async #untilAllowed(signal: AbortSignal): Promise<void> {
    if (this.#allowed.signal.aborted) await Promise.race([this.#allowedAgain.promise, hasAborted(signal)])
  }
}

async function workUnder(lease: Lease, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  using scope = signalScope([signal, lease.lost])
  try {
    await work(scope.signal)
  } finally {
    await lease.release()
  }
}
